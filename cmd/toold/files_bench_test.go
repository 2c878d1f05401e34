package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/toold/toold/client"
	"github.com/toold/toold/internal/must"
)

// BenchmarkFileTools compares calls of the file tools, from the client's frame
// to its return, with the direct operation, the two in turn. Writing counts
// against a plain write without sync, as programs do it.
func BenchmarkFileTools(b *testing.B) {
	c := dialDaemon(b, client.Options{})
	root := c.Hello().Workspace
	text := bytes.Repeat([]byte("some words of a line in a file that is edited, and more\n"), 1<<20/56)
	text = append(text, "the last line, once\n"...)
	for name, content := range map[string][]byte{"small": text[:1<<10], "big": text, "edited": text} {
		must.Do(b, os.WriteFile(filepath.Join(root, name), content, 0o644))
	}
	read := func(name string) func() error {
		return func() error { _, err := os.ReadFile(filepath.Join(root, name)); return err }
	}
	write := func() error { return os.WriteFile(filepath.Join(root, "direct"), text, 0o644) }
	fork := func() error { return exec.Command("bash", "-c", "true").Run() }
	swap := []string{"the last line, once", "the last line, twice"}
	for _, tc := range []struct {
		name, tool, floor string
		args              func(i int) map[string]any
		direct            func() error
	}{
		{"read-1KiB", "read_file", "x-fork+exec", func(int) map[string]any { return map[string]any{"file_path": "small"} }, fork},
		{"read-1MiB", "read_file", "x-read", func(int) map[string]any { return map[string]any{"file_path": "big", "limit": 1 << 30} }, read("big")},
		{"write-1MiB", "write_file", "x-write", func(i int) map[string]any {
			return map[string]any{"file_path": "written", "content": string(text[i%50:])}
		}, write},
		{"edit-1MiB", "edit_file", "x-write", func(i int) map[string]any {
			return map[string]any{"file_path": "edited", "old_string": swap[i%2], "new_string": swap[(i+1)%2]}
		}, write},
	} {
		b.Run(tc.name, func(b *testing.B) {
			var calls, direct time.Duration
			i := 0
			for b.Loop() {
				begin := time.Now()
				ret, err := c.Call(b.Context(), client.Call{Tool: tc.tool, Arguments: tc.args(i)}, client.Events{})
				middle := time.Now()
				if err != nil || ret.Status != "success" {
					b.Fatalf("%v %.200s", err, ret.Result)
				}
				must.Do(b, tc.direct())
				calls += middle.Sub(begin)
				direct += time.Since(middle)
				i++
			}
			b.ReportMetric(float64(calls.Microseconds())/float64(b.N), "µs/call")
			b.ReportMetric(float64(calls)/float64(direct), tc.floor)
		})
	}
}
