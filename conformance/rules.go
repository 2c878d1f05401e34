//go:build linux

package conformance

import (
	"fmt"
	"reflect"
	"slices"
)

// rules returns violations of the rules of every case: each frame is JSON in UTF-8, live output has no unreported gaps,
// a return has the shape that all dialects of the family understand, and no other frame can be taken for a return or a
// request.
func (r *recorder) rules() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	reasons := slices.Clone(r.faults)
	for _, f := range r.frames {
		if m, ok := f.value.(map[string]any); ok {
			if why := shape(m); why != "" {
				reasons = append(reasons, fmt.Sprintf("%s: %.600s", why, text(m)))
			}
		}
	}
	return reasons
}

// shape returns what is wrong with the form of a frame, "" if nothing.
func shape(m map[string]any) string {
	if m["message_type"] == "tool_return_message" {
		return returnShape(m)
	}
	if isReturn(m) {
		return ""
	}
	for _, field := range []string{"status", "tool_call", "role"} {
		if _, there := m[field]; there && !(field == "tool_call" && m["message_type"] == "approval_request_message") {
			return "a frame that is no return has the field " + field
		}
	}
	return ""
}

func returnShape(m map[string]any) string {
	first, _ := lookup("tool_returns.0", m)
	mirror, _ := first.(map[string]any)
	for _, field := range []string{"tool_call_id", "status", "tool_return", "stdout", "stderr"} {
		if !reflect.DeepEqual(m[field], mirror[field]) {
			return "tool_returns[0] does not mirror " + field
		}
	}
	for _, field := range []string{"id", "otid", "result", "tool_return"} {
		if _, ok := m[field].(string); !ok {
			return field + " is not a text"
		}
	}
	for _, field := range []string{"stdout", "stderr"} {
		if _, ok := join(m[field]); !ok {
			return field + " is not a list of texts"
		}
	}
	if m["status"] != "success" && m["status"] != "error" {
		return "status is neither success nor error"
	}
	return ""
}
