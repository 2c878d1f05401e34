package files

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"

	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/tools"
)

func benchWorkspace(b *testing.B) workspace {
	root := b.TempDir()
	w := workspace{root: root, tools: map[string]tools.Tool{}}
	for _, tool := range New(Options{Workspace: root, Profile: sandbox.Profile{Mode: sandbox.WorkspaceWrite, Workspace: root}, MaxRead: 2 << 20}) {
		w.tools[tool.Definition().Name] = tool
	}
	return w
}

func benchRun(b *testing.B, w workspace, tool string, a args) {
	text, err := json.Marshal(a)
	if err != nil {
		b.Fatal(err)
	}
	inv, err := w.tools[tool].Build(text)
	if err != nil {
		b.Fatal(err)
	}
	if got := inv.Execute(b.Context(), tools.IO{}); got.IsError {
		b.Fatal(got.Text)
	}
}

func benchmarkRead(b *testing.B, size int) {
	w := benchWorkspace(b)
	content := bytes.Repeat([]byte("0123456789abcde\n"), size/16)
	if err := os.WriteFile(w.root+"/f", content, 0o644); err != nil {
		b.Fatal(err)
	}
	b.Run("tool", func(b *testing.B) {
		b.SetBytes(int64(size))
		b.ReportAllocs()
		for b.Loop() {
			benchRun(b, w, "read_file", args{"file_path": "f"})
		}
	})
	b.Run("os.ReadFile", func(b *testing.B) {
		b.SetBytes(int64(size))
		for b.Loop() {
			if _, err := os.ReadFile(w.root + "/f"); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkRead1KiB(b *testing.B) { benchmarkRead(b, 1<<10) }
func BenchmarkRead1MiB(b *testing.B) { benchmarkRead(b, 1<<20) }
