package hook

import "time"

// qwen is Qwen Code (0.15.10 was tried).
func qwen() Dialect {
	return Dialect{Name: "qwen", Wait: 55 * time.Second, events: []string{"PreToolUse"}, answer: permission}
}
