package hook

import "time"

// vscode is the agent of Visual Studio Code, by its documentation: a hook may take 30 s.
func vscode() Dialect {
	return Dialect{Name: "vscode", Wait: 25 * time.Second, events: []string{"PreToolUse"}, answer: permission}
}
