//go:build linux

package execution

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/toold/toold/conformance/suite"
)

// Printed is a stream of a command.
type Printed struct {
	All   string // what is recorded of it
	Shown string // what is returned of it
	Bytes int64  // how long it is
}

// streamChecks lists what a case can expect of a stream, by the end of the name:
// stdout_exact, stderr_contains, combined_hex, result_contains.
func streamChecks() map[string]func(p Printed, want json.RawMessage) string {
	type match = func(text, part string) bool
	// every checks that all texts, or the one, are there as match says; a text that
	// is in the record may be missing in the return where that was cut.
	every := func(holds match, wanted bool) func(Printed, json.RawMessage) string {
		return func(p Printed, want json.RawMessage) string {
			for _, part := range texts(want) {
				if (holds(p.All, part) || holds(p.Shown, part)) != wanted {
					return fmt.Sprintf("%s does not hold of %s", suite.Short(part), suite.Short(p.All))
				}
			}
			return ""
		}
	}
	return map[string]func(p Printed, want json.RawMessage) string{
		"exact":      func(p Printed, want json.RawMessage) string { return compare(p.All, want) },
		"bytes":      func(p Printed, want json.RawMessage) string { return compare(float64(p.Bytes), want) },
		"hex":        func(p Printed, want json.RawMessage) string { return compare(hex.EncodeToString([]byte(p.All)), want) },
		"valid_utf8": func(p Printed, want json.RawMessage) string { return compare(utf8.ValidString(p.All), want) },
		"lines": func(p Printed, want json.RawMessage) string {
			return compare(float64(strings.Count(p.All, "\n")), want)
		},
		"contains":     every(strings.Contains, true),
		"not_contains": every(strings.Contains, false),
		"matches": every(func(text, pattern string) bool {
			found, err := suite.Find(pattern, text)
			return err == nil && found
		}, true),
		// The beginning and the end are those of the record and of what is shown.
		"head":   func(p Printed, want json.RawMessage) string { return p.edge(strings.HasPrefix, want) },
		"prefix": func(p Printed, want json.RawMessage) string { return p.edge(strings.HasPrefix, want) },
		"suffix": func(p Printed, want json.RawMessage) string { return p.edge(strings.HasSuffix, want) },
		"tail":   func(p Printed, want json.RawMessage) string { return p.edge(strings.HasSuffix, want) },
	}
}

func (p Printed) edge(holds func(text, part string) bool, want json.RawMessage) string {
	for _, part := range texts(want) {
		switch {
		case !holds(p.All, part):
			return fmt.Sprintf("%s does not hold of %s", suite.Short(part), suite.Short(p.All))
		case !holds(p.Shown, part):
			return fmt.Sprintf("%s does not hold of what the return shows: %s", suite.Short(part), suite.Short(p.Shown))
		}
	}
	return ""
}

// texts reads one text or a list of them.
func texts(want json.RawMessage) []string {
	var list []string
	var one string
	if json.Unmarshal(want, &list) == nil {
		return list
	}
	if json.Unmarshal(want, &one) == nil {
		return []string{one}
	}
	return []string{string(want)}
}

func compare(got any, raw json.RawMessage) string {
	var want any
	if err := json.Unmarshal(raw, &want); err != nil {
		return err.Error()
	}
	return suite.Differs(got, want)
}

// StreamCheck finds the check for a name, and the stream that it is about.
func StreamCheck(name string) (stream string, check func(Printed, json.RawMessage) string) {
	stream, what, _ := strings.Cut(name, "_")
	switch stream {
	case "stdout", "stderr", "combined", "result":
		return stream, streamChecks()[what]
	}
	return "", nil
}
