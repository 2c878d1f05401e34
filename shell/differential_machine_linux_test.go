package shell_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/executor"
	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/sandbox/launch"
)

// machine runs scripts in bash, in a sandbox. Its programs record how they are called. One bash
// runs each script in a child, to be fast; findings are confirmed in a bash of their own.
type machine struct {
	base    string // the workspace: w, home and out are watched
	env     []string
	watch   *watcher
	scripts *os.File // FIFO: where the loop reads them
	stop    context.CancelFunc
	ended   chan struct{} // closed when the loop has ended
}

type observed struct {
	ran   [][]string // programs of their own, by path, with their arguments
	read  []string   // absolute paths of files that were opened for reading
	wrote []string   // … for writing, or were made, removed or changed
	cut   bool       // it was stopped
	said  string     // what it printed, with a bash of its own
}

// loop runs scripts by eval in a child, or in a bash of their own. Descriptor 250 reaches its end
// when all processes of a script have ended.
const loop = `while IFS= read -r -d '' __way <&251 && IFS= read -r -d '' __script <&251; do
	(
		printf . >&250
		exec 251<&-
		ulimit -S -t 1
		if [ $__way = own ]; then exec bash --noprofile --norc -c "$__script" >../ctl/said; fi
		unset __way
		eval "$__script"
	) </dev/null >/dev/null 2>&1 250>../ctl/log
done 251<../ctl/scripts`

const (
	patience = 2 * time.Second
	mostData = 1 << 16
)

func newMachine(t testing.TB, files map[string]string) *machine {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(base, "bin")
	m := &machine{base: base}
	for _, dir := range []string{bin, base + "/ctl", base + "/w"} {
		must.Do(t, os.Mkdir(dir, 0o755))
	}
	programs(t, bin)
	for _, fifo := range []string{"scripts", "log"} {
		must.Do(t, syscall.Mkfifo(m.base+"/ctl/"+fifo, 0o600))
	}
	m.env = []string{"PATH=" + bin, "HOME=" + m.base + "/home", "LC_ALL=C"}
	m.watch = newWatcher(t, m.base, files)
	t.Cleanup(m.close)
	err = m.start()
	if errors.Is(err, sandbox.ErrUnavailable) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func (m *machine) start() error {
	ctx, stop := context.WithCancel(context.Background())
	m.stop, m.ended = stop, make(chan struct{})
	profile, _, err := launch.Choose(ctx, sandbox.Profile{
		Mode: sandbox.WorkspaceWrite, Workspace: m.base, Protect: []string{m.base + "/bin"}, Limits: sandbox.Limits{Processes: 400},
	}, sandbox.TierC)
	if err != nil {
		close(m.ended)
		return fmt.Errorf("cannot confine random scripts: %w", err)
	}
	// Ends when its context does, or when the loop has no more scripts to read.
	go func() {
		defer close(m.ended)
		_, _ = executor.Run(ctx, executor.Command{
			Script: loop, Dir: m.base + "/w", Env: m.env, Terminal: executor.Off, Grace: time.Nanosecond, Sandbox: profile, Stdout: io.Discard, Stderr: io.Discard,
		})
	}()
	// Opening for reading as well does not wait for the other side.
	m.scripts, err = os.OpenFile(m.base+"/ctl/scripts", os.O_RDWR, 0)
	return err
}

func (m *machine) close() {
	m.halt()
	m.watch.close()
}

func (m *machine) halt() {
	m.stop()
	<-m.ended
	m.scripts.Close()
}

func (m *machine) run(script string, own bool) (o observed, err error) {
	way := "child"
	if own {
		way = "own"
	}
	log, err := unix.Open(m.base+"/ctl/log", unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return o, err
	}
	defer unix.Close(log)
	if _, err := m.scripts.WriteString(way + "\x00" + script + "\x00"); err != nil {
		return o, err
	}
	data, whole, err := m.untilEnd(log)
	if err != nil {
		return o, err
	}
	if o.cut = !whole; o.cut {
		m.halt()
		if err := m.start(); err != nil {
			return o, err
		}
	}
	o.ran = records(data)
	if o.read, o.wrote, err = m.watch.take(); err == nil && own {
		var said []byte
		said, err = os.ReadFile(m.base + "/ctl/said")
		o.said = string(said)
	}
	return o, err
}

func (m *machine) untilEnd(log int) (data []byte, whole bool, err error) {
	ready := []unix.PollFd{{Fd: int32(log), Events: unix.POLLIN}}
	buffer := make([]byte, 1<<14)
	for end := (time.Time{}); ; {
		n, err := unix.Poll(ready, 100)
		select {
		case <-m.ended: // a signal that was meant for the script has ended the loop
			return data, false, nil
		default:
		}
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return nil, false, err
		case !end.IsZero() && time.Now().After(end):
			return data, false, nil
		case n == 0:
			continue
		}
		n, err = unix.Read(log, buffer)
		if errors.Is(err, unix.EAGAIN) {
			continue
		}
		if err != nil || n == 0 {
			return data, true, err
		}
		if end.IsZero() { // it begins with a dot
			end = time.Now().Add(patience)
			buffer[0] = 0
		}
		data = append(data, buffer[:n]...)
		if len(data) > mostData {
			return data, false, nil
		}
	}
}

func records(data []byte) (calls [][]string) {
	for data = bytes.TrimPrefix(data, []byte{0}); len(data) > 8; {
		count := int(data[0]) | int(data[1])<<8
		words := strings.SplitN(string(data[8:]), "\x00", count+2)
		if count == 0 || len(words) < count+2 {
			break
		}
		path := words[count]
		call := append([]string{path}, words[1:count]...)
		for i, word := range call[1:] {
			call[i+1] = descriptor.ReplaceAllString(word, procSubst)
		}
		calls = append(calls, call)
		data = []byte(words[count+1])
	}
	return calls
}
