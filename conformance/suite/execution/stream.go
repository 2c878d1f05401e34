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

// Output is a stream of a command.
type Output struct {
	All      string // what is recorded of it
	Returned string // what is returned of it
	Bytes    int64  // how long it is
}

// streamChecks lists what a case can expect of a stream, by the end of the name:
// stdout_exact, stderr_contains, combined_hex, result_contains.
func streamChecks() map[string]func(p Output, want json.RawMessage) string {
	type match = func(text, part string) bool
	// every checks all texts: each must match what is recorded or what is returned, or with wanted false neither.
	every := func(holds match, wanted bool) func(Output, json.RawMessage) string {
		return func(p Output, want json.RawMessage) string {
			for _, part := range texts(want) {
				if (holds(p.All, part) || holds(p.Returned, part)) != wanted {
					return fmt.Sprintf("%s does not hold of %s", suite.Short(part), suite.Short(p.All))
				}
			}
			return ""
		}
	}
	return map[string]func(p Output, want json.RawMessage) string{
		"exact":      func(p Output, want json.RawMessage) string { return compare(p.All, want) },
		"bytes":      func(p Output, want json.RawMessage) string { return compare(float64(p.Bytes), want) },
		"hex":        func(p Output, want json.RawMessage) string { return compare(hex.EncodeToString([]byte(p.All)), want) },
		"valid_utf8": func(p Output, want json.RawMessage) string { return compare(utf8.ValidString(p.All), want) },
		"lines": func(p Output, want json.RawMessage) string {
			return compare(float64(strings.Count(p.All, "\n")), want)
		},
		"contains":     every(strings.Contains, true),
		"not_contains": every(strings.Contains, false),
		"matches": every(func(text, pattern string) bool {
			found, err := suite.Find(pattern, text)
			return err == nil && found
		}, true),
		// The beginning and the end are those of the record and of what is shown.
		"head":   func(p Output, want json.RawMessage) string { return p.edge(strings.HasPrefix, want) },
		"prefix": func(p Output, want json.RawMessage) string { return p.edge(strings.HasPrefix, want) },
		"suffix": func(p Output, want json.RawMessage) string { return p.edge(strings.HasSuffix, want) },
		"tail":   func(p Output, want json.RawMessage) string { return p.edge(strings.HasSuffix, want) },
	}
}

func (p Output) edge(holds func(text, part string) bool, want json.RawMessage) string {
	for _, part := range texts(want) {
		switch {
		case !holds(p.All, part):
			return fmt.Sprintf("%s does not hold of %s", suite.Short(part), suite.Short(p.All))
		case !holds(p.Returned, part):
			return fmt.Sprintf("%s does not hold of what the return shows: %s", suite.Short(part), suite.Short(p.Returned))
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
func StreamCheck(name string) (stream string, check func(Output, json.RawMessage) string) {
	stream, what, _ := strings.Cut(name, "_")
	switch stream {
	case "stdout", "stderr", "combined", "result":
		return stream, streamChecks()[what]
	}
	return "", nil
}
