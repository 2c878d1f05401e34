package hook

import "time"

// letta is Letta Code, by its source: exit code 2 is the only no.
func letta() Dialect {
	return Dialect{Name: "letta", Wait: 55 * time.Second, events: []string{"PreToolUse"}, answer: permission}
}
