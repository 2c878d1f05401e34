//go:build linux

package conformance

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toold/toold/client"
	"github.com/toold/toold/message"
)

// BenchmarkFiles is one call of a file tool by one client, laid beside starting
// bash (F1) and beside doing the same to the file directly.
func BenchmarkFiles(b *testing.B) {
	line := "a line of ordinary text, as sources have it\n"
	for _, c := range []struct {
		name string
		size int
		call func(path string, content []byte) client.Call
		do   func(path string, content []byte) error
	}{
		{"read/1KiB", 1 << 10, readCall, readDirectly},
		{"read/1MiB", 1<<20 - 1, readCall, readDirectly},
		{"write/1KiB", 1 << 10, writeCall, replaceDirectly},
		{"write/1MiB", 1<<20 - 1, writeCall, replaceDirectly},
	} {
		b.Run(c.name, func(b *testing.B) {
			r := newRig(b, nil)
			agent := r.dial(client.Options{})
			path := filepath.Join(r.site.workspace, "file")
			content := []byte(strings.Repeat(line, c.size/len(line)+1)[:c.size])
			if err := os.WriteFile(path, content, 0o600); err != nil {
				b.Fatal(err)
			}
			var s samples
			var direct []time.Duration
			for b.Loop() {
				for range 30 {
					begun := time.Now()
					r.call(agent, c.call(path, content))
					middle := time.Now()
					if err := c.do(path, content); err != nil {
						b.Fatal(err)
					}
					direct = append(direct, time.Since(middle))
					s.ours = append(s.ours, middle.Sub(begun))
					s.floor = append(s.floor, floor(b))
				}
			}
			s.report(b, "F1")
			b.ReportMetric(float64(percentile(s.ours, 0.5))/float64(percentile(direct, 0.5)), "x-direct")
		})
	}
}

func readCall(path string, _ []byte) client.Call {
	return client.Call{Tool: "read_file", Arguments: map[string]any{"file_path": path}}
}

func writeCall(path string, content []byte) client.Call {
	return client.Call{Tool: "write_file", Arguments: map[string]any{"file_path": path, "content": string(content)}}
}

func readDirectly(path string, content []byte) error {
	got, err := os.ReadFile(path)
	if err == nil && !bytes.Equal(got, content) {
		err = os.ErrInvalid
	}
	return err
}

// replaceDirectly writes a file as a careful program does: beside it, to the disk,
// and in its place.
func replaceDirectly(path string, content []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), "new")
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.Write(content); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// call makes a call that must succeed.
func (r *rig) call(c *client.Client, call client.Call) message.ToolReturn {
	r.tb.Helper()
	ret, err := c.Call(r.tb.Context(), call, client.Events{})
	if err != nil || ret.Status != "success" {
		r.tb.Fatalf("%s: %v %.300s", call.Tool, err, ret.Result)
	}
	return ret
}
