package executor_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/toold/toold/executor"
	"github.com/toold/toold/internal/must"
)

func requireNamespaces(t testing.TB) {
	t.Helper()
	if why := executor.MissingNamespaces(); why != "" {
		t.Skip("this machine gives no user namespaces with a /proc of their own: " + why)
	}
}

func shellOutput(t testing.TB, script string) (string, error) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "bash", "--norc", "--noprofile", "-c", script).Output()
	return string(out), err
}

type ear struct {
	mu   sync.Mutex
	all  bytes.Buffer
	want string
	come chan struct{}
}

func listenFor(text string) *ear { return &ear{want: text, come: make(chan struct{})} }

func (e *ear) Write(b []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	before := strings.Contains(e.all.String(), e.want)
	e.all.Write(b)
	if !before && strings.Contains(e.all.String(), e.want) {
		close(e.come)
	}
	return len(b), nil
}

func (e *ear) String() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.all.String()
}

func stopWhenReady(t *testing.T, c executor.Command) (result, error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out, errs := listenFor("ready"), &bytes.Buffer{}
	c.Stdout, c.Stderr = out, errs
	var stopper sync.WaitGroup
	ended := make(chan struct{})
	// Ends when the command is ready or has ended.
	stopper.Go(func() {
		select {
		case <-out.come:
		case <-ended:
		}
		cancel()
		cancel()
	})
	e, err := executor.Run(ctx, c)
	close(ended)
	stopper.Wait()
	return result{out.String(), errs.String(), e.Code, e.Signal, e.Reason}, err
}

func running(t testing.TB, mark string) (n int) {
	t.Helper()
	files := must.Get(filepath.Glob("/proc/[0-9]*/cmdline"))(t)
	for _, f := range files {
		if b, err := os.ReadFile(f); err == nil && bytes.Contains(b, []byte(mark)) {
			n++
		}
	}
	return n
}

func requireProgram(t testing.TB, name string) {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		t.Skip(name + " is not installed")
	}
}
