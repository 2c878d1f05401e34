package hook

import "time"

// gemini is Gemini CLI, by its documentation: a hook may take 60 s.
func gemini() Dialect {
	return Dialect{Name: "gemini", Wait: 55 * time.Second, events: []string{"BeforeTool"}, answer: decision}
}
