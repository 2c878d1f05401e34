package hook

import "time"

// crush is Crush, by its documentation.
func crush() Dialect {
	return Dialect{Name: "crush", Wait: 25 * time.Second, events: []string{"PreToolUse"}, answer: decision}
}

// decision is an answer of one word, with a reason for a denial.
func decision(_, deny string) any {
	if deny != "" {
		return map[string]string{"decision": "deny", "reason": deny}
	}
	return map[string]string{"decision": "allow"}
}
