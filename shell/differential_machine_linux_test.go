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
	"github.com/toold/toold/sandbox"
)

// machine runs scripts in real bash, in a sandbox that can write nothing but its
// workspace and has no network. Its programs record how they are called.
//
// One bash reads the scripts and runs each in a child of its own, since starting
// bash costs more than most scripts do; what is found that way is confirmed by a
// bash of its own.
type machine struct {
	base    string   // the workspace: w, home and out are watched
	env     []string // of the scripts
	watch   *watcher
	scripts *os.File // FIFO: where the loop reads them
	stop    context.CancelFunc
	ended   chan struct{} // closed when the loop has ended
}

// observed is what a script did.
type observed struct {
	ran   [][]string // programs of their own, by path, with their arguments
	read  []string   // absolute paths of files that were opened for reading
	wrote []string   // … for writing, or were made, removed or changed
	cut   bool       // it did not end, or did too much: the rest was not seen
	said  string     // what it printed, with a bash of its own
}

// loop runs what it reads: eval in a child, or a bash of its own. The descriptor
// 250, on which programs record, is at its end when all that a script has started
// has ended. Endless loops end by themselves after a second of computing.
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

// The bounds of one script. Neither is a verdict: what was seen until then counts.
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
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	programs(t, bin)
	for _, fifo := range []string{"scripts", "log"} {
		if err := syscall.Mkfifo(m.base+"/ctl/"+fifo, 0o600); err != nil {
			t.Fatal(err)
		}
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

// start starts the loop.
func (m *machine) start() error {
	ctx, stop := context.WithCancel(context.Background())
	m.stop, m.ended = stop, make(chan struct{})
	profile, _, err := sandbox.Choose(ctx, sandbox.Profile{
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

// run plays a script on the files as they are. With own it has a bash of its own.
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

// untilEnd reads what programs record until the last of them has ended.
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
		if errors.Is(err, unix.EAGAIN) { // a program has opened it since the last one had closed it
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

// records reads what the programs have written; see canary.
func records(data []byte) (calls [][]string) {
	for data = bytes.TrimPrefix(data, []byte{0}); len(data) > 8; {
		count := int(data[0]) | int(data[1])<<8
		words := strings.SplitN(string(data[8:]), "\x00", count+2)
		if count == 0 || len(words) < count+2 {
			break // the rest was cut off, or is of the script
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
