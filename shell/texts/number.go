package texts

import "strings"

// IsInteger reports whether bash reads s as this decimal number: a leading zero means octal.
func IsInteger(s string) bool {
	octal := len(s) > 1 && s[0] == '0'
	return IsNumber(s) && !octal && len(s) <= 18
}

// IsNumber reports whether s has digits alone.
func IsNumber(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }
