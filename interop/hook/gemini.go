package hook

import "time"

// gemini is Gemini CLI (0.61.0 was tried): a hook may take 60 s.
func gemini() Dialect {
	return Dialect{Name: "gemini", Wait: 55 * time.Second, events: []string{"BeforeTool"}, answer: decision}
}
