package suite

import (
	"fmt"
	"strconv"
)

// Differs compares two values and says how they differ, "" if they do not.
func Differs(got, want any) string {
	if got == want {
		return ""
	}
	return fmt.Sprintf("is %s, want %s", Short(got), Short(want))
}

// Short renders a value for a reason.
func Short(v any) string {
	s := fmt.Sprintf("%#v", v)
	switch v := v.(type) {
	case nil:
		return "null"
	case string:
		s = strconv.Quote(v)
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	if len(s) > 300 {
		s = s[:200] + " … " + s[len(s)-80:]
	}
	return s
}
