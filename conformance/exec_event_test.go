//go:build linux

package conformance

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/toold/toold/conformance/suite"
)

// eventTypes are the frames behind the words of the cases; other words name the
// type of a frame themselves.
func eventType(word string) string {
	switch word {
	case "exit", "result", "return":
		return "tool_return_message"
	case "output", "delta", "data":
		return "tool_output_delta"
	case "start", "started":
		return "tool_started"
	}
	return word
}

// checkLast checks that nothing about the call came after an event. What came
// while nobody knew yet that the call was over does not count: finish waited.
func (r *run) checkLast(want string) string {
	if len(r.about) == 0 {
		return "is missing: nothing came"
	}
	last := r.about[len(r.about)-1]
	if !typeIs(last.value, eventType(want)) {
		return fmt.Sprintf("is %.300s", text(last.value))
	}
	return ""
}

// checkEvents looks for events with certain fields, within a time from the start
// of the command.
func (r *run) checkEvents(want []map[string]any) string {
	for _, event := range want {
		i := slices.IndexFunc(r.about, func(f frame) bool { return r.isEvent(f, event) })
		if i < 0 {
			return fmt.Sprintf("lacks %s", text(event))
		}
		if s, ok := event["within_s"].(float64); ok {
			r.p.late.Check(text(event), r.about[i].at.Sub(r.started()), time.Duration(s*float64(time.Second)))
		}
	}
	return ""
}

// isEvent reports whether a frame is an event, whenever it came.
func (r *run) isEvent(f frame, event map[string]any) bool {
	m := f.value.(map[string]any)
	for name, want := range event {
		switch name {
		case "type":
			if word, _ := want.(string); word == "gap" {
				if m["gap"] == nil {
					return false
				}
			} else if m["message_type"] != eventType(word) {
				return false
			}
		case "within_s":
		default:
			if m[name] != want {
				return false
			}
		}
	}
	return true
}

func (r *run) checkNoEvents(words []string) string {
	for _, word := range words {
		event := map[string]any{"type": word}
		for _, f := range r.about {
			if r.isEvent(f, event) {
				return fmt.Sprintf("came: %.300s", text(f.value))
			}
		}
	}
	return ""
}

// checkSpool compares how many bytes of stdout are recorded.
func (r *run) checkSpool(want int) string { return suite.Differs(len(r.output["stdout"]), want) }

// checkReassembled puts together what was seen live on all lives of the
// connection; what came while there was none is fetched. Every byte is there.
func (r *run) checkReassembled(want string) string {
	recorded := r.output["stdout"]
	live, seen, err := r.live("stdout", len(recorded))
	if err != nil {
		return err.Error()
	}
	if !slices.Contains(seen, true) {
		return "cannot be checked: nothing was seen live"
	}
	for i, ok := range seen {
		if !ok {
			live[i] = recorded[i]
		}
	}
	return suite.Differs(string(live), want)
}

// checkLiveText checks that live output was text and that nothing in it stands
// for bytes that were cut apart.
func (r *run) checkLiveText(bool) string {
	var all strings.Builder
	for _, f := range r.about {
		m := f.value.(map[string]any)
		if m["data_b64"] != nil {
			return fmt.Sprintf("does not hold: %.200s is not text", text(m))
		}
		if data, ok := m["data"].(string); ok && typeIs(m, "tool_output_delta") {
			all.WriteString(data)
		}
	}
	switch {
	case all.Len() == 0:
		return "cannot be checked: nothing was seen live"
	case strings.ContainsRune(all.String(), utf8.RuneError):
		return "does not hold: " + suite.Short(all.String())
	}
	return ""
}

// checkOnlyToken checks that every line of the output is the token of this call.
func (r *run) checkOnlyToken(string) string {
	lines := strings.Split(strings.TrimSuffix(r.output["stdout"], "\n"), "\n")
	for _, line := range lines {
		if line != r.id {
			return fmt.Sprintf("does not hold: a line is %s, want %s", suite.Short(line), r.id)
		}
	}
	return ""
}
