package files

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/sandbox/fileworker"
	"github.com/toold/toold/tools"
)

func benchWorkspace(b *testing.B) workspace {
	root := b.TempDir()
	w := workspace{root: root, tools: map[string]tools.Tool{}}
	opener := new(fileworker.Pool)
	b.Cleanup(opener.Close)
	for _, tool := range New(Options{Files: opener, Workspace: root, Profile: sandbox.Profile{Mode: sandbox.WorkspaceWrite, Workspace: root}, MaxRead: 2 << 20}) {
		w.tools[tool.Definition().Name] = tool
	}
	return w
}

func benchRun(b *testing.B, w workspace, tool string, a args) {
	text := must.Get(json.Marshal(a))(b)
	inv := must.Get(w.tools[tool].Build(text))(b)
	if got := inv.Execute(b.Context(), tools.IO{}); got.IsError {
		b.Fatal(got.Text)
	}
}

// inTurn runs a call and the direct operation one after the other, so that the
// machine's moods meet both, and prints their ratio.
func inTurn(b *testing.B, call func(i int), floor string, direct func() error) {
	b.ReportAllocs()
	var calls, directs time.Duration
	for i := 0; b.Loop(); i++ {
		begin := time.Now()
		call(i)
		middle := time.Now()
		must.Do(b, direct())
		calls += middle.Sub(begin)
		directs += time.Since(middle)
	}
	b.ReportMetric(float64(calls.Nanoseconds())/float64(b.N)/1000, "µs/call")
	b.ReportMetric(float64(calls)/float64(directs), floor)
}

func benchmarkRead(b *testing.B, size int) {
	w := benchWorkspace(b)
	content := bytes.Repeat([]byte("0123456789abcde\n"), size/16)
	must.Do(b, os.WriteFile(w.root+"/f", content, 0o644))
	inTurn(b, func(int) { benchRun(b, w, "read_file", args{"file_path": "f"}) }, "x-read", func() error {
		_, err := os.ReadFile(w.root + "/f")
		return err
	})
}

func BenchmarkRead1KiB(b *testing.B) { benchmarkRead(b, 1<<10) }
func BenchmarkRead1MiB(b *testing.B) { benchmarkRead(b, 1<<20) }

// BenchmarkReadPart reads 100 lines in the middle of 50 MiB.
func BenchmarkReadPart(b *testing.B) {
	w := benchWorkspace(b)
	must.Do(b, os.WriteFile(w.root+"/f", bytes.Repeat([]byte("0123456789abcde\n"), 50<<16), 0o644))
	inTurn(b, func(int) { benchRun(b, w, "read_file", args{"file_path": "f", "offset": 25 << 16, "limit": 100}) }, "x-read", func() error {
		f, err := os.Open(w.root + "/f")
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = io.CopyN(struct{ io.Writer }{io.Discard}, f, 25<<20)
		return err
	})
}

// replaceDirectly is what a careful program does without toold.
func replaceDirectly(path string, content []byte) error {
	f, err := os.Create(path + ".new")
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

func BenchmarkWrite1MiB(b *testing.B) {
	w := benchWorkspace(b)
	texts := []string{string(bigText(18000)), strings.ToUpper(string(bigText(18000)))}
	inTurn(b, func(i int) { benchRun(b, w, "write_file", args{"file_path": "f", "content": texts[i%2]}) }, "x-replace", func() error {
		return replaceDirectly(w.root+"/g", []byte(texts[0]))
	})
}

func BenchmarkEdit1MiB(b *testing.B) {
	w := benchWorkspace(b)
	content := bigText(18000)
	must.Do(b, os.WriteFile(w.root+"/f", content, 0o644))
	texts := []string{"line 9000 of", "line 9000 OF"}
	inTurn(b, func(i int) {
		benchRun(b, w, "edit_file", args{"file_path": "f", "old_string": texts[i%2], "new_string": texts[1-i%2]})
	}, "x-replace", func() error { return replaceDirectly(w.root+"/g", content) })
}
