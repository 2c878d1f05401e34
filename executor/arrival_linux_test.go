package executor_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/toold/toold/executor"
	"github.com/toold/toold/internal/must"
)

// gate holds up whoever writes to it first, and so the reader of a command, until it is opened.
type gate struct {
	mergedStream
	once    *sync.Once
	reached chan struct{}
	open    chan struct{}
}

func (g gate) Write(p []byte) (int, error) {
	g.once.Do(func() { close(g.reached); <-g.open })
	return g.mergedStream.Write(p)
}

// While its reader is held up a command makes more reports than the kernel queues.
func TestReportsThatOverflowCostTheOrderAndNothingElse(t *testing.T) {
	t.Parallel()
	text := must.Get(os.ReadFile("/proc/sys/fs/inotify/max_queued_events"))(t)
	queued, err := strconv.Atoi(strings.TrimSpace(string(text)))
	const pipe = 64 << 10
	lines := queued/2 + 100
	if err != nil || len("a\n")*(lines+2) > pipe {
		t.Skipf("what two pipes hold does not overflow a queue of %s events (fs.inotify.max_queued_events)", text)
	}
	c := in(t, executor.Off, `echo a; read -r _ <begin; for ((i = 1; i < `+strconv.Itoa(lines)+`; i++)); do echo a; echo b >&2; done; : >done`)
	begin, done := filepath.Join(c.Dir, "begin"), filepath.Join(c.Dir, "done")
	for _, path := range []string{begin, done} {
		must.Do(t, syscall.Mkfifo(path, 0o600))
	}
	var m merged
	g := gate{once: new(sync.Once), reached: make(chan struct{}), open: make(chan struct{})}
	out, errs := g, g
	out.mergedStream, errs.mergedStream = mergedStream{&m, 0}, mergedStream{&m, 1}
	c.Stdout, c.Stderr = out, errs
	var writing sync.WaitGroup
	// Ends when the command has written all.
	writing.Go(func() {
		defer close(g.open)
		<-g.reached
		if err := os.WriteFile(begin, []byte("\n"), 0); err != nil {
			t.Error(err)
		}
		if _, err := os.ReadFile(done); err != nil {
			t.Error(err)
		}
	})
	e, err := executor.Run(t.Context(), c)
	writing.Wait()
	if err != nil || e.Code != 0 || e.Exact {
		t.Errorf("%+v, %v; the order cannot be exact", e, err)
	}
	requireWhole(t, &m, strings.Repeat("a\n", lines), strings.Repeat("b\n", lines-1))
}

func requireWhole(t *testing.T, m *merged, stdout, stderr string) {
	t.Helper()
	if m.streams[0].String() != stdout || m.streams[1].String() != stderr {
		t.Errorf("the streams have %d and %d bytes, want %d and %d", m.streams[0].Len(), m.streams[1].Len(), len(stdout), len(stderr))
	}
	whole := map[string]bool{"": true}
	for line := range strings.Lines(stdout + stderr) {
		whole[line] = true
	}
	for i, line := range strings.SplitAfter(m.all.String(), "\n") {
		if !whole[line] {
			t.Fatalf("line %d is %q", i+1, line)
		}
	}
}

// withoutInotify marks the run of the test below without inotify instances.
const withoutInotify = "TOOLD_EXECUTOR_WITHOUT_INOTIFY"

// The limit is that of a user namespace of the test's own, in which this binary runs the
// test once more.
func TestWithoutInotifyLinesComeAsTheyArrive(t *testing.T) {
	t.Parallel()
	if os.Getenv(withoutInotify) == "" {
		requireNamespaces(t)
		cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v")
		cmd.Env = append(os.Environ(), withoutInotify+"=1")
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWUSER,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
		}
		out, err := cmd.CombinedOutput()
		if _, why, skipped := bytes.Cut(out, []byte("--- SKIP")); skipped {
			t.Skipf("%s", why)
		}
		if err != nil || !bytes.Contains(out, []byte("--- PASS: "+t.Name()+"/no_pool")) {
			t.Errorf("%v: %s", err, out)
		}
		return
	}
	if err := os.WriteFile("/proc/sys/user/max_inotify_instances", []byte("0"), 0); err != nil {
		t.Skipf("cannot take inotify from a user namespace: %v", err)
	}
	if fd, err := syscall.InotifyInit1(syscall.IN_CLOEXEC); err == nil {
		syscall.Close(fd)
		t.Skip("this kernel gives inotify in spite of user.max_inotify_instances")
	}
	pool := executor.NewPool(1, nil)
	defer pool.Close()
	for name, from := range map[string]*executor.Pool{"no pool": nil, "pool": pool} {
		t.Run(name, func(t *testing.T) {
			for _, mode := range []executor.Terminal{executor.Split, executor.Off} {
				m, e := merge(t, from, in(t, mode, `for i in {1..500}; do echo out; echo err >&2; done`))
				if e.Code != 0 || e.Exact {
					t.Errorf("%v: %+v; nobody knows the order", mode, e)
				}
				requireWhole(t, m, strings.Repeat("out\n", 500), strings.Repeat("err\n", 500))
				// What is 2 ms apart is in order all the same, unless the reader is kept from running meanwhile.
				for range 10 {
					if m, _ = merge(t, from, in(t, mode, `echo 1; sleep 0.2; echo 2 >&2; sleep 0.2; echo 3`)); m.all.String() == "1\n2\n3\n" {
						break
					}
				}
				if m.all.String() != "1\n2\n3\n" {
					t.Errorf("%v: %q", mode, m.all.String())
				}
			}
		})
	}
}
