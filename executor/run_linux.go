package executor

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/sandbox/launch"
)

const (
	// After the exit, children may still print. Run reads until settleLooks successive checks found that no child
	// runs or has written, but at most settleMost checks. It counts checks instead of time, since a suspended daemon
	// has not seen what happened meanwhile.
	settleLooks = 3
	settleMost  = 75
	settleStep  = 20 * time.Millisecond
	settleMax   = 10 * time.Second // for a helper that does not answer

	// During the grace period, stopped processes get CONT, first after wakeFirst, then at growing intervals up to
	// wakeSeldom.
	wakeFirst  = 20 * time.Millisecond
	wakeSeldom = 500 * time.Millisecond

	// killWithin limits the time of a kill before the helper itself is killed.
	killWithin = 2 * time.Second
)

// Run starts the command and returns when none of its processes is left, at most Grace and a few seconds after
// Timeout or the end of ctx. Changes of the clock and suspension do not affect Timeout (CLOCK_MONOTONIC).
//
// An error means that nothing of the command ran. errors.Is finds sandbox.ErrUnavailable if it could not be confined,
// errors.As a *launch.DirError for a bad Dir.
//
// When ctx ends or Timeout passes, every process gets TERM and CONT, and KILL after Grace. So does a command that
// keeps reading its terminal after EOF. If ctx ends before the start, Run returns the Exit of a command that TERM
// ended at once, and no error. Processes that outlive the command are killed and listed in Exit.Leftovers.
func Run(ctx context.Context, c Command) (Exit, error) {
	var none *Pool
	return none.Run(ctx, c)
}

// maxArgument is MAX_ARG_STRLEN of execve(2) without the final NUL, in bytes.
const maxArgument = 128<<10 - 1

// arguments returns bash's arguments for the script. A script that is too long for an argument is a memory file on
// descriptor 3, which bash reads and closes first. It differs from a short one: error messages name "eval",
// BASH_EXECUTION_STRING contains the line that reads it, and trailing newlines are lost.
func arguments(script string) ([]string, *os.File, error) {
	if len(script) <= maxArgument {
		return append(slices.Clone(bashArguments), script), nil, nil
	}
	fd, err := unix.MemfdCreate("script", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot hold the script: %w", err)
	}
	f := os.NewFile(uintptr(fd), "script")
	if _, err := f.WriteString(script); err != nil {
		f.Close()
		return nil, nil, fmt.Errorf("cannot hold the script: %w", err)
	}
	return append(slices.Clone(bashArguments), `eval "exec 3<&-; $(</dev/fd/3)"`), f, nil
}

type running struct {
	Command
	streams *streams
	process *launch.Process
	begun   time.Time
	reason  Reason
	watch   watch
	memory  memoryWatch
	stuck   bool

	// retire receives a helper whose call has no processes, instead of a wait for its end.
	retire func(*launch.Process)
}

func (r *running) wait(ctx context.Context) Exit {
	if r.Started != nil {
		r.Started(Started{PID: r.process.PID(), Identity: r.process.Identity(), Sandbox: r.process.Report()})
	}
	eof, finish := r.listen()
	disconnect := r.connect()
	r.awaitExit(ctx)
	r.settle(ctx, eof)
	r.streams.reader.interrupt()
	<-eof
	disconnect()
	left := r.end()
	finish()
	return r.exit(left)
}

// connect serves the command's network until disconnect is called.
func (r *running) connect() (disconnect func()) {
	names, ports := r.process.ProxyListeners()
	if r.Connect == nil || names == nil {
		return func() {}
	}
	ctx, stop := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	// Ends with disconnect.
	serving.Go(func() { r.Connect(ctx, names, ports) })
	return func() { stop(); serving.Wait() }
}

func (r *running) end() []launch.Member {
	if isClosed(r.process.Alone()) && r.process.Empty() {
		r.retire(r.process)
		return nil
	}
	left := r.process.End()
	r.stuck = r.process.Stuck()
	return left
}

// listen starts the goroutines of the command. finish ends the input and waits.
func (r *running) listen() (eof <-chan struct{}, finish func()) {
	r.streams.lastOutput.Store(r.begun.UnixNano())
	all := make(chan struct{})
	// Ends at the end of the streams or by interrupt.
	go func() {
		r.streams.reader.run()
		close(all)
	}()
	var feeder sync.WaitGroup
	done := make(chan struct{})
	// Ends when Input is closed or done is.
	feeder.Go(func() { r.feed(done) })
	return all, func() {
		close(done)
		if in := r.streams.input; in != nil {
			_ = in.SetWriteDeadline(time.Unix(1, 0))
		}
		feeder.Wait()
	}
}

func (r *running) awaitExit(ctx context.Context) {
	var timeout <-chan time.Time
	if r.Timeout > 0 {
		timeout = time.After(r.Timeout)
	}
	ended := r.process.Exited()
	if r.WaitAll {
		ended = r.process.Alone()
	}
	var look <-chan time.Time
	if r.streams.input != nil { // otherwise it waits for no input
		look = time.After(quiet)
	}
	full := time.After(fillsMemory)
	for r.reason == Exited {
		select {
		case <-ended:
			return
		case <-full:
			r.memory.begin()
		case <-timeout:
			r.reason = TimedOut
		case <-ctx.Done():
			r.reason = Stopped
		case <-r.Abort:
			r.reason = Aborted
		case <-look:
			again, starved := r.look(ctx)
			if starved {
				r.reason = Starved
			}
			look = time.After(again)
		}
	}
	if ctx.Err() != nil {
		r.reason = Stopped // after a suspension, both may arrive at once
	}
	r.stop()
}

func (r *running) stop() {
	if r.reason != Aborted {
		r.process.SignalAll(syscall.SIGTERM)
		r.process.SignalAll(syscall.SIGCONT) // a stopped process receives no other signal
		if r.endsInGrace() {
			return
		}
	}
	r.process.Kill()
	waitFor(r.process.Alone(), killWithin) // otherwise End kills the helper
}

// endsInGrace waits for the processes to end. One that is stopped meanwhile has not received TERM, so it gets CONT
// again.
func (r *running) endsInGrace() bool {
	left := cmp.Or(r.Grace, defaultGrace)
	for pause := wakeFirst; left > 0; pause = min(2*pause, wakeSeldom) {
		pause = min(pause, left)
		if waitFor(r.process.Alone(), pause) {
			return true
		}
		left -= pause
		r.process.Wake()
	}
	return false
}

func waitFor(c <-chan struct{}, d time.Duration) bool {
	select {
	case <-c:
		return true
	case <-time.After(d):
		return false
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// settle reads the last output of children of a command that ended by itself.
func (r *running) settle(ctx context.Context, eof <-chan struct{}) {
	if r.reason != Exited || isClosed(r.process.Alone()) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, settleMax)
	defer cancel()
	looked := time.Now()
	for quiet, looks := 0, 0; quiet < settleLooks && looks < settleMost; {
		select {
		case <-r.process.Alone():
			return
		case <-eof:
			return
		case <-ctx.Done():
			return
		case <-time.After(settleStep):
		}
		now := time.Now()
		quiet, looks = quiet+1, looks+1
		if r.streams.idle(now) < now.Sub(looked) || r.streams.pending() || r.process.Runnable(ctx) {
			quiet = 0
		}
		looked = now
	}
}

func (r *running) exit(left []launch.Member) Exit {
	e := Exit{
		Reason: r.reason, Sandbox: r.process.Report(),
		Limit: r.process.Limit(), Refused: r.process.Refused(), Stuck: r.stuck, Exact: r.streams.reader.exact(), Leftovers: left,
	}
	if r.reason != Exited {
		e.Waiting = r.watch.now
	}
	status, known := r.process.Status()
	e.Code, e.Signal = endOf(status, known)
	e.Lost = !known
	killed := e.Reason == Exited && e.Code == 128+int(syscall.SIGKILL)
	if e.Limit == "" && killed && r.memory.met() {
		e.Limit = "machine"
	}
	return e
}

// KillIdentity kills the command with this Started.Identity if its helper is alive, and reports whether it did. It is
// for the calls of a crashed daemon.
func KillIdentity(identity string) (killed bool, err error) {
	return launch.KillIdentity(identity)
}
