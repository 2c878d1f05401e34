package hook

import "time"

// claude is Claude Code (2.1.330 was tried). "ask" is never answered: without a terminal it
// denies, and with one it asks a second time.
func claude() Dialect {
	return Dialect{Name: "claude", Wait: 590 * time.Second, events: []string{"PreToolUse"}, answer: permission}
}

type specific struct {
	HookSpecificOutput map[string]string `json:"hookSpecificOutput"`
}

// permission is the answer in the form of Claude Code, which others have taken over.
func permission(event, deny string) any {
	out := map[string]string{"hookEventName": event, "permissionDecision": "allow"}
	if deny != "" {
		out = map[string]string{"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": deny}
	}
	return specific{out}
}
