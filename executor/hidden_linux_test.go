package executor_test

import (
	"bytes"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/toold/toold/executor"
	"github.com/toold/toold/internal/must"
)

// signalled calls do at the first output.
type signalled struct {
	bytes.Buffer
	once sync.Once
	do   func()
}

func (s *signalled) Write(p []byte) (int, error) {
	s.once.Do(s.do)
	return s.Buffer.Write(p)
}

// meanwhile runs c, whose script reads fifo after its first output, and replace before that.
func meanwhile(t *testing.T, p *executor.Pool, c executor.Command, replace func()) (printed string) {
	t.Helper()
	path := filepath.Join(c.Dir, "fifo")
	must.Do(t, syscall.Mkfifo(path, 0o600))
	fifo := must.Get(os.OpenFile(path, os.O_RDWR, 0))(t)
	defer fifo.Close()
	out := &signalled{do: func() {
		replace()
		must.Get(fifo.WriteString("go\n"))(t)
	}}
	c.Stdout = out
	must.Get(p.Run(t.Context(), c))(t)
	return out.String()
}

// git replaces its configuration when it changes it.
func TestAProtectedFileThatIsReplacedWhileACallRunsIsProtectedAgain(t *testing.T) {
	t.Parallel()
	c := in(t, executor.Off, `echo ready; read -r go <fifo
for n in {1..20000}; do (: >>config) 2>/dev/null || exec echo protected; done; echo open`)
	path := filepath.Join(c.Dir, "config")
	write := func(path string) { must.Do(t, os.WriteFile(path, []byte("x"), 0o600)) }
	write(path)
	c.Sandbox.Protect = []string{path}
	p := executor.NewPool(0, nil)
	defer p.Close()
	got := meanwhile(t, p, c, func() {
		write(path + ".lock")
		must.Do(t, os.Rename(path+".lock", path))
	})
	must.Match(t, "ready\nprotected\n", got)
}

// Most programs replace a file when they save it.
func TestAHiddenFileThatIsReplacedWhileACallRunsIsHiddenAgain(t *testing.T) {
	t.Parallel()
	dir := must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
	path := func(name string) string { return filepath.Join(dir, name) }
	write := func(name string) { must.Do(t, os.WriteFile(path(name), []byte("SEKRET"), 0o600)) }
	p := executor.NewPool(0, nil)
	defer p.Close()
	for name, replace := range map[string]func(){
		"replaced": func() { write("new"); must.Do(t, os.Rename(path("new"), path("replaced"))) },
		"moved":    func() { must.Do(t, os.Rename(path("moved"), path("aside"))); write("moved") },
		"removed":  func() { must.Do(t, os.Remove(path("removed"))); write("removed") },
		"missing":  func() { write("missing") },
	} {
		if name != "missing" {
			write(name)
		}
		c := in(t, executor.Off, `cat `+path(name)+` 2>/dev/null && echo open; echo ready; read -r go <fifo
for n in {1..2000}; do cat `+path(name)+` >/dev/null 2>&1 || exec echo hidden; done; echo open`)
		c.Sandbox.Hide, c.Sandbox.Write = []string{path(name)}, []string{dir}
		must.Match(t, "ready\nhidden\n", meanwhile(t, p, c, replace))
	}
}
