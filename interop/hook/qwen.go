package hook

import "time"

// qwen is Qwen Code, by its documentation.
func qwen() Dialect {
	return Dialect{Name: "qwen", Wait: 55 * time.Second, events: []string{"PreToolUse"}, answer: permission}
}
