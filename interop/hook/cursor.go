package hook

import (
	"encoding/json"
	"time"
)

// cursor is Cursor, by its documentation. It has an event of its own for each kind of call.
func cursor() Dialect {
	return Dialect{
		Name: "cursor", Wait: 25 * time.Second, adapt: ofCursor,
		events: []string{"preToolUse", "beforeShellExecution", "beforeReadFile", "beforeMCPExecution"},
		answer: func(_, deny string) any {
			if deny != "" {
				return map[string]string{"permission": "deny", "user_message": deny, "agent_message": deny}
			}
			return map[string]string{"permission": "allow"}
		},
	}
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

// object is an object with one field.
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
