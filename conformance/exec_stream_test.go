//go:build linux

package conformance

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// tokenName is how the script of a case names the token of its call.
var tokenName = regexp.MustCompile(`\$\{?RUN_ID\}?`)

// printed is a stream of a call: what is recorded of it, what the return shows of
// it, and how long it is.
type printed struct {
	all, shown string
	bytes      int64
}

// streamChecks lists what a case can expect of a stream, by the end of the name:
// stdout_exact, stderr_contains, combined_hex, result_contains.
func streamChecks() map[string]func(p printed, want json.RawMessage) string {
	type match = func(text, part string) bool
	// every checks that all texts, or the one, are there as match says; a text that
	// is in the record may be missing in the return where that was cut.
	every := func(holds match, wanted bool) func(printed, json.RawMessage) string {
		return func(p printed, want json.RawMessage) string {
			for _, part := range texts(want) {
				if (holds(p.all, part) || holds(p.shown, part)) != wanted {
					return fmt.Sprintf("%s does not hold of %s", short(part), short(p.all))
				}
			}
			return ""
		}
	}
	return map[string]func(p printed, want json.RawMessage) string{
		"exact":      func(p printed, want json.RawMessage) string { return compare(p.all, want) },
		"bytes":      func(p printed, want json.RawMessage) string { return compare(float64(p.bytes), want) },
		"hex":        func(p printed, want json.RawMessage) string { return compare(hex.EncodeToString([]byte(p.all)), want) },
		"valid_utf8": func(p printed, want json.RawMessage) string { return compare(utf8.ValidString(p.all), want) },
		"lines": func(p printed, want json.RawMessage) string {
			return compare(float64(strings.Count(p.all, "\n")), want)
		},
		"contains":     every(strings.Contains, true),
		"not_contains": every(strings.Contains, false),
		"matches": every(func(text, pattern string) bool {
			found, err := find(pattern, text)
			return err == nil && found
		}, true),
		// The beginning and the end are those of the record and of what is shown.
		"head":   func(p printed, want json.RawMessage) string { return p.edge(strings.HasPrefix, want) },
		"prefix": func(p printed, want json.RawMessage) string { return p.edge(strings.HasPrefix, want) },
		"suffix": func(p printed, want json.RawMessage) string { return p.edge(strings.HasSuffix, want) },
		"tail":   func(p printed, want json.RawMessage) string { return p.edge(strings.HasSuffix, want) },
	}
}

func (p printed) edge(holds func(text, part string) bool, want json.RawMessage) string {
	for _, part := range texts(want) {
		switch {
		case !holds(p.all, part):
			return fmt.Sprintf("%s does not hold of %s", short(part), short(p.all))
		case !holds(p.shown, part):
			return fmt.Sprintf("%s does not hold of what the return shows: %s", short(part), short(p.shown))
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
	return differs(got, want)
}

// streamCheck finds the check for a name, and the stream that it is about.
func streamCheck(name string) (stream string, check func(printed, json.RawMessage) string) {
	stream, what, _ := strings.Cut(name, "_")
	switch stream {
	case "stdout", "stderr", "combined", "result":
		return stream, streamChecks()[what]
	}
	return "", nil
}

// text returns a stream of the call. The result, which a model reads, is not
// recorded as a stream.
func (r *run) text(stream string) printed {
	if stream == "result" {
		text, _ := r.ret["result"].(string)
		return printed{text, text, int64(len(text))}
	}
	p := printed{all: r.output[stream], bytes: int64(len(r.output[stream]))}
	p.shown, _ = join(r.ret[stream])
	if size, ok := r.ret[stream+"_bytes"].(float64); ok {
		p.bytes = int64(size)
	}
	if stream == "combined" {
		p.shown = p.all
	}
	return p
}
