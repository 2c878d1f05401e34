package fileworker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/sandbox/internal/fileops"
	"github.com/toold/toold/sandbox/internal/snapshot"
	"github.com/toold/toold/sandbox/launch"
)

const (
	// openWithin limits the time to open a file or start a worker. A file system on a dead network mount never
	// answers.
	openWithin = 30 * time.Second

	// replaceWithin limits the time to write, sync and rename a file.
	replaceWithin = 2 * time.Minute

	mostIdle = 8

	// mostWorkers limits the profiles with a worker at a time. A policy names few.
	mostWorkers = 3
)

// workers are the processes that open files, one per profile in use.
type workers struct {
	failed  func(error)    // see Pool.Report; may be nil
	running sync.WaitGroup // for workers that are in use or ending

	mu     sync.Mutex
	list   []*worker // usable workers, most recently used last
	closed bool
}

type opener func(c *fileops.Conn, path string, meanwhile func()) (fd int, err error)

// open opens a file in the view of a profile. Protected files are readable.
func (s *workers) open(ctx context.Context, p sandbox.Profile, canonical string) (*os.File, sandbox.Report, error) {
	fd, report, err := s.opened(ctx, p, canonical, (*fileops.Conn).Open)
	if err != nil {
		return nil, report, err
	}
	return impatient(fd, canonical), report, nil
}

func (s *workers) openDir(ctx context.Context, p sandbox.Profile, canonical string) (*os.File, sandbox.Report, error) {
	fd, report, err := s.opened(ctx, p, canonical, (*fileops.Conn).OpenDir)
	if err != nil {
		return nil, report, err
	}
	return os.NewFile(uintptr(fd), canonical), report, nil
}

func (s *workers) opened(ctx context.Context, p sandbox.Profile, canonical string, open opener) (fd int, report sandbox.Report, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, openWithin, errNoAnswer)
	defer cancel()
	report, err = s.ask(ctx, p, true, func(w *worker, c *fileops.Conn) (err error) {
		same := false
		fd, err = open(c, canonical, func() { same = w.host.Same() })
		switch {
		case err == nil && !same:
			unix.Close(fd)
			return errStale
		case err != nil && !same && !errors.Is(err, fileops.ErrLost):
			return errStale
		case err != nil:
			return explain("open", canonical, err)
		}
		return nil
	})
	return fd, report, err
}

// replace replaces a file in the view of a profile. It retries once if the worker is lost before the rename. If the
// worker is lost after it, the result is unknown.
func (s *workers) replace(ctx context.Context, p sandbox.Profile, canonical string, r Replacement) error {
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), replaceWithin, errNoAnswer)
	defer cancel()
	_, err := s.ask(ctx, p, false, func(w *worker, c *fileops.Conn) error {
		if !w.host.Same() || !w.protected.Same() {
			return errStale
		}
		return replaceBy(&remote{conn: c}, canonical, r)
	})
	return err
}

var (
	errNoAnswer = errors.New("the file system does not answer; see whether what it is mounted from can be reached (mount, dmesg)")
	errUnknown  = errors.New("the process that writes files was lost while it put the new file in its place or removed the old one; read the file to see whether it did")
	errStale    = errors.New("cannot open files: directories, mounts or hidden files change faster than a sandbox can be made; make the call again")
	errClosed   = errors.New("cannot open files: the daemon stops")
)

type remote struct {
	conn *fileops.Conn
	file *os.File // set once begun
	done bool     // the worker has no pending file
}

func (r *remote) Begin(c fileops.Change, content []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate("content", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	memory := os.NewFile(uintptr(fd), "content")
	defer memory.Close()
	if _, err := memory.Write(content); err != nil {
		return nil, err
	}
	r.file, err = r.conn.Begin(c, memory)
	return r.file, err
}

func (r *remote) Commit() error {
	r.done = true
	err := r.conn.Commit()
	if errors.Is(err, fileops.ErrLost) {
		return errUnknown
	}
	return err
}

func (r *remote) Remove(c fileops.Change) error {
	err := r.conn.Remove(c)
	if errors.Is(err, fileops.ErrLost) {
		return errUnknown
	}
	return err
}

func (r *remote) Discard() {
	if r.file == nil {
		return
	}
	r.file.Close()
	if !r.done {
		_ = r.conn.Discard() // a lost worker has discarded it
	}
}

// mostStale limits the workers that are tried while their views become outdated. The machine's mounts can change for
// many reasons.
const mostStale = 5

// ask runs do with a worker for this profile. It tries again with another worker once if the worker is lost, and if
// its view is outdated. reads means that protected paths do not matter.
func (s *workers) ask(ctx context.Context, p sandbox.Profile, reads bool, do func(*worker, *fileops.Conn) error) (sandbox.Report, error) {
	p.Ports, p.Sockets, p.Groups, p.Limits = nil, nil, nil, sandbox.Limits{} // workers do not use these
	if len(p.Protect) == 0 {
		p.Protect = nil // compared by serves
	}
	for tries := 1; ; tries++ {
		report, fresh, err := s.askOne(ctx, p, reads, do)
		stale := errors.Is(err, errStale) && tries < mostStale
		if !fresh || tries > 1 && !stale {
			return report, err
		}
		if s.failed != nil && !stale {
			s.failed(err)
		}
	}
}

// askOne tries one worker. fresh means that another worker may succeed.
func (s *workers) askOne(ctx context.Context, p sandbox.Profile, reads bool, do func(*worker, *fileops.Conn) error) (report sandbox.Report, fresh bool, err error) {
	if ctx.Err() != nil {
		return sandbox.Report{}, false, ctx.Err()
	}
	w, conn, err := s.lease(ctx, p, reads)
	if err != nil {
		return sandbox.Report{}, errors.Is(err, fileops.ErrLost), err
	}
	cut, err := uncut(ctx, conn, func() error { return do(w, conn) })
	fresh = !cut && (errors.Is(err, fileops.ErrLost) || errors.Is(err, errStale))
	s.release(w, conn, cut || fresh)
	return w.report(), fresh, err
}

// uncut calls do, and cuts the connection if ctx ends before it returns.
func uncut(ctx context.Context, conn *fileops.Conn, do func() error) (cut bool, err error) {
	done := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(done)
		conn.Cut()
	})
	err = do()
	if stop() {
		return false, err
	}
	<-done
	if !errors.Is(err, fileops.ErrLost) {
		return true, err
	}
	if why := context.Cause(ctx); errors.Is(why, errNoAnswer) {
		return true, why
	}
	return true, ctx.Err()
}

// lease returns a worker and a connection, which the caller must release.
func (s *workers) lease(ctx context.Context, p sandbox.Profile, reads bool) (w *worker, conn *fileops.Conn, err error) {
	if w, conn, err = s.pick(p, reads); err != nil {
		return nil, nil, err
	}
	if err = w.started(ctx); err == nil && conn == nil {
		conn, err = fileops.Dial(w.listener)
	}
	if err != nil {
		s.release(w, nil, true)
		return nil, nil, fmt.Errorf("cannot open files: no process can be started that does it: %w", err)
	}
	return w, conn, nil
}

// pick finds a worker with this profile, or creates one without starting it.
func (s *workers) pick(p sandbox.Profile, reads bool) (w *worker, idle *fileops.Conn, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, nil, errClosed
	}
	i := slices.IndexFunc(s.list, func(w *worker) bool { return w.serves(p, reads) })
	if i >= 0 {
		w = s.list[i]
		s.list = slices.Delete(s.list, i, i+1)
	} else {
		w = &worker{profile: p, caches: p.Caches.Version()}
		s.running.Add(1)
		s.makeRoom(p)
	}
	s.list = append(s.list, w)
	w.users++
	if n := len(w.idle); n > 0 {
		idle = w.idle[n-1]
		w.idle = w.idle[:n-1]
	}
	return w, idle, nil
}

// makeRoom retires workers that one with this profile replaces: those that differ only in protected paths or have
// older caches, and one if there are too many. The caller holds mu.
func (s *workers) makeRoom(p sandbox.Profile) {
	for _, w := range slices.Clone(s.list) {
		if w.serves(p, true) || w.caches != p.Caches.Version() || len(s.list) == mostWorkers {
			s.retire(w)
		}
	}
}

// release returns a worker and its connection. If they are bad, they are not reused.
func (s *workers) release(w *worker, conn *fileops.Conn, bad bool) {
	s.mu.Lock()
	w.users--
	if conn != nil && !bad && len(w.idle) < mostIdle {
		w.idle = append(w.idle, conn)
		conn = nil
	}
	if bad {
		s.retire(w)
	} else if w.retired {
		s.letGo(w)
	}
	s.mu.Unlock()
	if conn != nil {
		conn.Close()
	}
}

// retire stops giving a worker to callers, and ends it once it is unused. The caller holds mu.
func (s *workers) retire(w *worker) {
	s.list = slices.DeleteFunc(s.list, func(other *worker) bool { return other == w })
	w.retired = true
	s.letGo(w)
}

// letGo ends an unused retired worker. The caller holds mu.
func (s *workers) letGo(w *worker) {
	if w.users == 0 && !w.gone {
		w.gone = true
		// Ends with the worker's process. Close waits for it.
		go func() {
			defer s.running.Done()
			w.end()
		}()
	}
}

// close ends all workers, once they are unused, and waits for them.
func (s *workers) close() {
	s.mu.Lock()
	s.closed = true
	for _, w := range slices.Clone(s.list) {
		s.retire(w)
	}
	s.mu.Unlock()
	s.running.Wait()
}

// worker is a process that opens files. started sets the fields below profile once.
type worker struct {
	profile sandbox.Profile
	caches  any // version when the worker was created

	start     sync.Once
	err       error
	process   *launch.Process
	listener  *os.File         // receives connections
	host      *snapshot.Cached // its view, except protected
	protected *snapshot.Host

	// Guarded by workers.mu.
	users   int
	idle    []*fileops.Conn
	retired bool
	gone    bool
}

func (w *worker) serves(p sandbox.Profile, reads bool) bool {
	if reads {
		p.Protect = w.profile.Protect
	}
	return w.caches == p.Caches.Version() && reflect.DeepEqual(w.profile, p)
}

// started starts the worker once. Concurrent callers wait.
func (w *worker) started(ctx context.Context) error {
	w.start.Do(func() {
		ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), openWithin, errNoAnswer)
		defer cancel()
		w.err = w.launch(ctx)
	})
	return w.err
}

func (w *worker) launch(ctx context.Context) error {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	w.listener = os.NewFile(uintptr(pair[0]), "door")
	theirs := os.NewFile(uintptr(pair[1]), "door")
	defer theirs.Close()
	p := w.profile
	w.host = snapshot.TakeCached(p.Roots(), p.Hide)
	w.protected = snapshot.Take(nil, p.Fixed()) // separate, since the list may be long and reading does not need it
	w.process, err = launch.Start(ctx, launch.Command{
		Argv: []string{"/proc/self/exe", fileops.Marker}, Env: []string{"GOMAXPROCS=2"}, Dir: "/",
		Stdin: null, Stdout: null, Stderr: null, Extra: theirs, Profile: p,
	})
	return err
}

func (w *worker) report() sandbox.Report {
	r := w.process.Report()
	r.Network, r.Proxy = false, false
	r.Enforced = append(slices.Clip(r.Enforced), "openat2")
	return r
}

func (w *worker) end() {
	for _, conn := range w.idle { // no other goroutine uses them
		conn.Close()
	}
	if w.process != nil {
		w.process.End()
	}
	w.listener.Close() // nil is allowed
	if w.host != nil {
		w.host.Close()
		w.protected.Close()
	}
}
