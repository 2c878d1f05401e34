package hook

import (
	"encoding/json"
	"time"
)

// Dialects returns all dialects. The numbers are tested versions; dialects without one follow documentation or source.
func Dialects() []Dialect {
	before := []string{"PreToolUse"}
	return []Dialect{
		// "ask" denies without a terminal, and asks twice with one (2.1.330).
		{Name: "claude", Wait: 590 * time.Second, events: before, answer: permission},
		// Both an empty answer and "ask" allow the call (0.169.0).
		{Name: "codex", Wait: 590 * time.Second, events: before, answer: denialOnly(permission)},
		{Name: "crush", Wait: 25 * time.Second, events: before, answer: decision},
		// Each kind of call has an event of its own.
		{
			Name: "cursor", Wait: 25 * time.Second, adapt: ofCursor, answer: cursorPermission,
			events: []string{"preToolUse", "beforeShellExecution", "beforeReadFile", "beforeMCPExecution"},
		},
		// The agent's limit for a hook is 60 s (0.61.0).
		{Name: "gemini", Wait: 55 * time.Second, events: []string{"BeforeTool"}, answer: decision},
		// Only "block" and exit code 2 deny.
		{Name: "goose", Wait: 25 * time.Second, events: before, answer: denialOnly(block)},
		// Only exit code 2 denies.
		{Name: "letta", Wait: 55 * time.Second, events: before, answer: permission},
		{Name: "qwen", Wait: 55 * time.Second, events: before, answer: permission}, // 0.15.10
		// The agent's limit for a hook is 30 s.
		{Name: "vscode", Wait: 25 * time.Second, events: before, answer: permission},
	}
}

// denialOnly prints nothing if the call is allowed.
func denialOnly(answer func(event, deny string) any) func(event, deny string) any {
	return func(event, deny string) any {
		if deny == "" {
			return nil
		}
		return answer(event, deny)
	}
}

type specific struct {
	HookSpecificOutput map[string]string `json:"hookSpecificOutput"`
}

func permission(event, deny string) any {
	out := map[string]string{"hookEventName": event, "permissionDecision": "allow"}
	if deny != "" {
		out = map[string]string{"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": deny}
	}
	return specific{out}
}

func decision(_, deny string) any {
	if deny != "" {
		return map[string]string{"decision": "deny", "reason": deny}
	}
	return map[string]string{"decision": "allow"}
}

func block(_, deny string) any {
	return map[string]string{"decision": "block", "reason": deny}
}

func cursorPermission(_, deny string) any {
	if deny != "" {
		return map[string]string{"permission": "deny", "user_message": deny, "agent_message": deny}
	}
	return map[string]string{"permission": "allow"}
}

// ofCursor converts the fields of an event. The arguments of an MCP tool may be a string.
func ofCursor(event string, f fields) fields {
	switch event {
	case "beforeShellExecution":
		f["toolname"], f["toolinput"] = json.RawMessage(`"Shell"`), object("command", f["command"])
	case "beforeReadFile":
		f["toolname"], f["toolinput"] = json.RawMessage(`"Read"`), object("file_path", f["filepath"])
	case "beforeMCPExecution":
		name, _ := json.Marshal("mcp:" + f.text("toolname")) // cannot fail for a string
		f["toolname"] = name
		if text := f.text("toolinput"); text != "" {
			f["toolinput"] = json.RawMessage(text)
		}
	}
	return f
}

func object(name string, value json.RawMessage) json.RawMessage {
	if value == nil {
		return nil
	}
	text, err := json.Marshal(map[string]json.RawMessage{name: value})
	if err != nil {
		return nil
	}
	return text
}
