package hook

import (
	"encoding/json"
	"time"
)

// Dialects lists them. An agent without a version was set up by its documentation or source
// alone.
func Dialects() []Dialect {
	before := []string{"PreToolUse"}
	return []Dialect{
		// "ask" is never answered: without a terminal it denies, and with one it asks a second
		// time (2.1.330).
		{Name: "claude", Wait: 590 * time.Second, events: before, answer: permission},
		// It takes "ask" for yes, which is never answered, and lets the call go on where nothing
		// is printed (0.169.0).
		{Name: "codex", Wait: 590 * time.Second, events: before, answer: denialOnly(permission)},
		{Name: "crush", Wait: 25 * time.Second, events: before, answer: decision},
		// It has an event of its own for each kind of call.
		{
			Name: "cursor", Wait: 25 * time.Second, adapt: ofCursor, answer: cursorPermission,
			events: []string{"preToolUse", "beforeShellExecution", "beforeReadFile", "beforeMCPExecution"},
		},
		// A hook may take 60 s (0.61.0).
		{Name: "gemini", Wait: 55 * time.Second, events: []string{"BeforeTool"}, answer: decision},
		// Only "block" and exit code 2 are a no.
		{Name: "goose", Wait: 25 * time.Second, events: before, answer: denialOnly(block)},
		// Exit code 2 is the only no.
		{Name: "letta", Wait: 55 * time.Second, events: before, answer: permission},
		{Name: "qwen", Wait: 55 * time.Second, events: before, answer: permission}, // 0.15.10
		// A hook may take 30 s.
		{Name: "vscode", Wait: 25 * time.Second, events: before, answer: permission},
	}
}

// denialOnly prints nothing for a yes.
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

// permission is the answer in the form of Claude Code, which others have taken over.
func permission(event, deny string) any {
	out := map[string]string{"hookEventName": event, "permissionDecision": "allow"}
	if deny != "" {
		out = map[string]string{"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": deny}
	}
	return specific{out}
}

// decision is an answer of one word, with a reason for a denial.
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

// ofCursor makes the usual fields of those of an event. The arguments of a tool of an MCP
// server may be a text.
func ofCursor(event string, f fields) fields {
	switch event {
	case "beforeShellExecution":
		f["tool_name"], f["tool_input"] = json.RawMessage(`"Shell"`), object("command", f["command"])
	case "beforeReadFile":
		f["tool_name"], f["tool_input"] = json.RawMessage(`"Read"`), object("file_path", f["file_path"])
	case "beforeMCPExecution":
		name, _ := json.Marshal("mcp:" + f.text("tool_name")) // a string
		f["tool_name"] = name
		if text := f.text("tool_input"); text != "" {
			f["tool_input"] = json.RawMessage(text)
		}
	}
	return f
}

func object(name string, value json.RawMessage) json.RawMessage {
	if value == nil {
		return nil
	}
	text, err := json.Marshal(fields{name: value})
	if err != nil {
		return nil
	}
	return text
}
