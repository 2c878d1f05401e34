package shell

import (
	"io/fs"
	"runtime"
	"strings"
	"testing"

	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/shell/texts"
)

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

// TestNoTextCostsTooMuch counts system calls, effects and memory, which are the same on every
// machine. It runs alone, since memory is counted for the process.
func TestNoTextCostsTooMuch(t *testing.T) {
	must.Long(t)
	const questions, effects, megabytes, pieces = 3000, 10000, 32, 250000
	ws, _ := must.Workspace(t)
	p := judging(t, ws, 100)
	for name, script := range hostileScripts(t) {
		a := newAnalyser(ws)
		files := &counted{Resolver: a.resolver}
		a.resolver = files
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		found := a.Effects(script, ws)
		p.Decide(found)
		runtime.ReadMemStats(&after)
		made, taken := after.Mallocs-before.Mallocs, (after.TotalAlloc-before.TotalAlloc)>>20
		if files.asked > questions || len(found) > effects || taken > megabytes || made > pieces {
			t.Errorf("%s: %d questions to the file system, %d effects, %d MiB of memory in %d pieces", name, files.asked, len(found), taken, made)
		}
	}
}

// A call keeps its effects until it is answered, which may wait for a person.
func TestEffectsKeepNoMoreThanTheyNeed(t *testing.T) {
	t.Parallel()
	ws, _ := must.Workspace(t)
	for name, script := range map[string]string{"short": "ls; pwd", "at the limit": "ls #" + strings.Repeat("x", texts.MaxScript-4), "too long": "ls #" + strings.Repeat("x", 4<<20)} {
		if found := newAnalyser(ws).Effects(script, ws); cap(found) > 2*len(found) {
			t.Errorf("%s: %d effects are kept in room for %d", name, len(found), cap(found))
		}
	}
}
