package hook

import "time"

// goose is Goose, by its documentation: only "block" and exit code 2 are a no.
func goose() Dialect {
	return Dialect{
		Name: "goose", Wait: 25 * time.Second, events: []string{"PreToolUse"},
		answer: func(_, deny string) any {
			if deny == "" {
				return nil
			}
			return map[string]string{"decision": "block", "reason": deny}
		},
	}
}
