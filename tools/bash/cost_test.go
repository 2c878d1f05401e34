package bash

import (
	"io/fs"
	"runtime"
	"testing"
)

// counted counts the questions to the file system.
type counted struct {
	Resolver
	asked int
}

func (c *counted) Canonical(path string) string {
	c.asked++
	return c.Resolver.Canonical(path)
}

func (c *counted) Glob(pattern string, limit int) ([]string, bool) {
	c.asked++
	return c.Resolver.Glob(pattern, limit)
}

func (c *counted) Mode(path string) (fs.FileMode, error) {
	c.asked++
	return c.Resolver.Mode(path)
}

// TestNoTextCostsTooMuch counts what hostile texts make the analysis and the
// decision do, which is the same on every machine: questions to the file system, and
// pieces of memory. It runs alone, since memory is counted for all of the process.
func TestNoTextCostsTooMuch(t *testing.T) {
	const questions, megabytes = 4000, 64
	ws, _ := workspace(t)
	p := judging(t, ws, 100)
	for name, script := range hostileScripts() {
		tool := newTool(ws).(*tool)
		files := &counted{Resolver: tool.analyser.resolver}
		tool.analyser.resolver = files
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		p.Decide(tool.analyser.analyse(script, ws))
		runtime.ReadMemStats(&after)
		if made := (after.TotalAlloc - before.TotalAlloc) >> 20; files.asked > questions || made > megabytes {
			t.Errorf("%s: %d questions to the file system, %d MiB of memory taken", name, files.asked, made)
		}
	}
}
