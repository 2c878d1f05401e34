package bash

import (
	"encoding/json"
	"testing"
)

// BenchmarkAnalyse shows what the effects of everyday commands cost, with their
// paths resolved on a real file system.
func BenchmarkAnalyse(b *testing.B) {
	ws, _ := workspace(b)
	tool := newTool(ws)
	for name, script := range map[string]string{
		"ls":       "ls -la",
		"pipe":     "grep -rn x src/main.go | sort -u | head -20",
		"redirect": "cat a.txt b.txt > src/deep/new.txt 2>/dev/null",
		"loop":     "for f in a b c; do wc -l \"$f.txt\"; done",
		"git":      "cd src && git log --oneline -5 -- main.go",
	} {
		args, err := json.Marshal(map[string]string{"command": script})
		if err != nil {
			b.Fatal(err)
		}
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := tool.Build(args); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
