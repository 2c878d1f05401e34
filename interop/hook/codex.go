package hook

import "time"

// codex is Codex (0.169.0 was tried). It takes "ask" for yes, which is never answered, and
// lets the call go on where nothing is printed.
func codex() Dialect {
	return Dialect{
		Name: "codex", Wait: 590 * time.Second, events: []string{"PreToolUse"},
		answer: func(event, deny string) any {
			if deny == "" {
				return nil
			}
			return permission(event, deny)
		},
	}
}
