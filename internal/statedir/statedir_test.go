package statedir_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/internal/statedir"
)

// childDir names the directory that this program serves when a test has started it.
const childDir = "TOOLD_TEST_SERVE"

func TestMain(m *testing.M) {
	dir := os.Getenv(childDir)
	if dir == "" {
		os.Exit(m.Run())
	}
	l, err := statedir.Serve(dir)
	var name io.Closer
	if err == nil {
		name, err = statedir.Hold(dir, "child")
	}
	if err == nil {
		err = l.Publish(statedir.Daemon{PID: os.Getpid(), Version: "1", URL: "ws://127.0.0.1:1/v1/ws"})
	}
	fmt.Println("served", err)
	_, _ = io.Copy(io.Discard, os.Stdin) // the test's end of it is closed when that ends
	runtime.KeepAlive(l)
	runtime.KeepAlive(name)
}

// child serves dir in another process. The result kills it.
func child(t *testing.T, dir string, wrap ...string) (kill func()) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("this system has no locks of open files")
	}
	args := append(wrap, os.Args[0])
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(os.Environ(), childDir+"="+dir)
	out := must.Get(cmd.StdoutPipe())(t)
	must.Get(cmd.StdinPipe())(t)
	must.Do(t, cmd.Start())
	kill = func() { _ = cmd.Process.Kill(); _, _ = cmd.Process.Wait() }
	t.Cleanup(kill)
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "served <nil>\n" {
		t.Fatalf("the child says %q, %v", line, err)
	}
	return kill
}

func TestOneDaemonServesADirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if d, ok, err := statedir.Running(dir); ok || err != nil {
		t.Errorf("an empty directory is served by %+v, %v", d, err)
	}
	kill := child(t, dir)
	_, err := statedir.Serve(dir)
	var served *statedir.ServedError
	if !errors.As(err, &served) || !strings.Contains(err.Error(), fmt.Sprint("pid ", served.Daemon.PID)) || !strings.Contains(err.Error(), served.Daemon.URL) || served.Daemon.PID == 0 {
		t.Errorf("a second daemon: %v", err)
	}
	if d, ok, err := statedir.Running(dir); !ok || err != nil || d != served.Daemon {
		t.Errorf("it is served by %+v, %v, %v", d, ok, err)
	}
	kill()
	if d, ok, err := statedir.Running(dir); ok || err != nil {
		t.Errorf("a killed daemon is running: %+v, %v", d, err)
	}
	l := must.Get(statedir.Serve(dir))(t)
	if d, ok, err := statedir.Running(dir); ok || err != nil {
		t.Errorf("before the next daemon listens, clients send their tokens to the address of the killed one: %+v, %v", d, err)
	}
	if err := l.Publish(statedir.Daemon{PID: 1}); err != nil {
		t.Error(err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if left, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(left) != 1 {
		t.Errorf("%q is left, %v", left, err)
	}
}

// TestALivingProcessOfAnotherPidNamespaceIsAlive: /proc does not show it.
func TestALivingProcessOfAnotherPidNamespaceIsAlive(t *testing.T) {
	t.Parallel()
	wrap := []string{"unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child", "--mount-proc"}
	if err := exec.Command(wrap[0], append(wrap[1:], "true")...).Run(); err != nil {
		t.Skipf("cannot make a pid namespace: %v", err)
	}
	dir := t.TempDir()
	child(t, dir, wrap...)
	if held, err := statedir.Held(dir, "child"); !held || err != nil {
		t.Errorf("the process is held for dead (%v)", err)
	}
	if held, err := statedir.Held(dir, "nobody"); held || err != nil {
		t.Errorf("nobody is alive (%v)", err)
	}
	if d, ok, err := statedir.Running(dir); !ok || err != nil || d.PID != 1 {
		t.Errorf("it is served by %+v, %v, %v", d, ok, err)
	}
}

// Not parallel: a process that another test starts has what is open here, and so holds the
// name, until its program begins.
func TestANameIsHeldUntilItsLastHolderIsGone(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("this system has no locks of open files")
	}
	dir := t.TempDir()
	is := func(want bool) {
		t.Helper()
		if held, err := statedir.Held(dir, "a"); held != want || err != nil {
			t.Errorf("held is %v (%v), want %v", held, err, want)
		}
	}
	is(false)
	first := must.Get(statedir.Hold(dir, "a"))(t)
	second := must.Get(statedir.Hold(dir, "a"))(t)
	is(true)
	first.Close()
	is(true)
	second.Close()
	is(false)
}
