package executor

import (
	"context"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/sandbox"
)

const (
	defaultGrace = 2 * time.Second

	// After the command has ended its children may still have something to say,
	// as tee in a process substitution does. They are heard until so many looks in
	// a row found that none of them runs or has written, but not for more than
	// settleMost looks. Looks are counted, not time: a daemon that was kept from running
	// has not seen what its machine did meanwhile.
	settleLooks = 3
	settleMost  = 75
	settleStep  = 20 * time.Millisecond // between two looks
	settleMax   = 10 * time.Second      // for a helper that does not answer

	// In the grace what is stopped is woken, first after wakeFirst, then in longer
	// and longer pauses.
	wakeFirst  = 20 * time.Millisecond
	wakeSeldom = 500 * time.Millisecond

	// killWithin is how long the kernel may take to carry out a kill before the
	// helper itself is ended.
	killWithin = 2 * time.Second
)

// Run starts the command and returns when nothing of it is left running, at most
// Grace and a few seconds after Timeout or the end of ctx.
//
// An error means that it could not run, and nothing of it did: errors.Is finds
// sandbox.ErrUnavailable when it could not be confined, errors.As a
// *sandbox.DirError for a bad Dir. How a command that ran ended stands in Exit.
//
// When ctx ends or Timeout passes, every process of the command gets TERM and
// CONT, CONT again when it is stopped later, and KILL after Grace. A ctx that ends before the start is no error: the
// Exit is that of a command that TERM ended at once. Processes that outlive the
// command are killed and listed in Exit.Leftovers. So ends a command, too, that
// sleeps some seconds in a read of its terminal after the end of its input: it
// would wait for ever.
//
// Timeout counts the time in which the machine runs (CLOCK_MONOTONIC): changes of
// the clock do not matter, and a suspended machine's time does not count.
func Run(ctx context.Context, c Command) (Exit, error) {
	var none *Pool
	return none.Run(ctx, c)
}

// maxArgument is MAX_ARG_STRLEN of execve(2), with its final NUL.
const maxArgument = 128<<10 - 1

// arguments are those of bash for the script. One that is too long for an
// argument comes through a memory file on descriptor 3, which bash reads and
// closes before the script begins. Such a script differs from a short one in
// this: error messages name "eval" instead of "-c", BASH_EXECUTION_STRING holds
// the reading line, and newlines at its very end are gone.
func arguments(script string) ([]string, *os.File, error) {
	plain := []string{"--noprofile", "--norc", "-c"}
	if len(script) <= maxArgument {
		return append(plain, script), nil, nil
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
	return append(plain, `eval "exec 3<&-; $(</dev/fd/3)"`), f, nil
}

type running struct {
	Command
	streams *streams
	process *sandbox.Process
	begun   time.Time
	reason  Reason
	watch   watch
	memory  memoryWatch
	stuck   bool

	// retire, if set, takes over a helper whose call has no process left, so that
	// nobody waits for the end of an empty sandbox.
	retire func(*sandbox.Process)
}

// wait waits for the exit, the rest of the output, the leftovers and the helper.
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

// connect serves the command's network. disconnect ends that.
func (r *running) connect() (disconnect func()) {
	names, ports := r.process.Doors()
	if r.Connect == nil || names == nil {
		return func() {}
	}
	ctx, stop := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	// Ends with disconnect.
	serving.Go(func() { r.Connect(ctx, names, ports) })
	return func() { stop(); serving.Wait() }
}

// end ends what is left and returns what that was.
func (r *running) end() []sandbox.Member {
	if r.retire != nil && isClosed(r.process.Alone()) && r.process.Empty() {
		r.retire(r.process)
		return nil
	}
	left := r.process.End()
	r.stuck = r.process.Stuck()
	return left
}

// listen starts the goroutines of the command. finish ends the input and waits.
func (r *running) listen() (eof <-chan struct{}, finish func()) {
	for _, o := range r.streams.out {
		o.last.Store(r.begun.UnixNano())
	}
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

// awaitExit waits for the exit, and enforces the timeout.
func (r *running) awaitExit(ctx context.Context) {
	var timeout <-chan time.Time
	if r.Timeout > 0 {
		t := time.NewTimer(r.Timeout)
		defer t.Stop()
		timeout = t.C
	}
	ended := r.process.Exited()
	if r.WaitAll {
		ended = r.process.Alone()
	}
	look := time.NewTimer(quiet)
	defer look.Stop()
	if r.streams.input == nil {
		look.Stop() // it has nothing to wait for
	}
	full := time.NewTimer(fillsMemory)
	defer full.Stop()
	for r.reason == Exited {
		select {
		case <-ended:
			return
		case <-full.C:
			r.memory.begin()
		case <-timeout:
			r.reason = TimedOut
		case <-ctx.Done():
			r.reason = Stopped
		case <-r.Abort:
			r.reason = Aborted
		case <-look.C:
			again, starved := r.look(ctx)
			if starved {
				r.reason = Starved
			}
			look.Reset(again)
		}
	}
	if ctx.Err() != nil {
		r.reason = Stopped // also when a machine that stood still brings the timeout at the same time
	}
	r.stop()
}

// stop asks all processes of the command to end, and makes those that do not.
func (r *running) stop() {
	if r.reason != Aborted {
		r.process.SignalAll(syscall.SIGTERM)
		r.process.SignalAll(syscall.SIGCONT) // a stopped one hears nothing else
		if r.endsInGrace() {
			return
		}
	}
	r.process.Kill()
	waitFor(r.process.Alone(), killWithin) // else End takes the helper away
}

// endsInGrace gives the processes the time to end. One that is stopped meanwhile,
// by itself or by another, has not heard TERM: it is woken again.
func (r *running) endsInGrace() bool {
	left := r.Grace
	if left == 0 {
		left = defaultGrace
	}
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
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-c:
		return true
	case <-t.C:
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

// settle hears out the children of a command that ended by itself.
func (r *running) settle(ctx context.Context, eof <-chan struct{}) {
	if r.reason != Exited || isClosed(r.process.Alone()) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, settleMax)
	defer cancel()
	looked := time.Now()
	look := time.NewTimer(settleStep)
	defer look.Stop()
	for quiet, looks := 0, 0; quiet < settleLooks && looks < settleMost; look.Reset(settleStep) {
		select {
		case <-r.process.Alone():
			return
		case <-eof:
			return
		case <-ctx.Done():
			return
		case <-look.C:
		}
		now := time.Now()
		quiet, looks = quiet+1, looks+1
		if r.streams.idle(now) < now.Sub(looked) || r.streams.pending() || r.process.Runnable(ctx) {
			quiet = 0
		}
		looked = now
	}
}

func (r *running) exit(left []sandbox.Member) Exit {
	e := Exit{
		Reason: r.reason, Duration: time.Since(r.begun), Sandbox: r.process.Report(),
		Limit: r.process.Limit(), Refused: r.process.Refused(), Stuck: r.stuck, Exact: r.streams.reader.exact(), Leftovers: left,
	}
	if r.reason != Exited {
		e.Waiting = r.watch.now
	}
	status, known := r.process.Status()
	switch {
	case !known:
		e.Lost = true
		e.Code, e.Signal = 128+int(syscall.SIGKILL), "SIGKILL"
	case status.Signaled():
		e.Code, e.Signal = 128+int(status.Signal()), unix.SignalName(status.Signal())
	default:
		e.Code = status.ExitStatus()
	}
	if e.Limit == "" && e.Reason == Exited && e.Code == 128+int(syscall.SIGKILL) && r.memory.met() {
		e.Limit = "machine"
	}
	return e
}

// KillIdentity kills the command whose Started.Identity this is, if its helper
// still lives, and reports whether it did: what a daemon does with the records
// of one that crashed.
func KillIdentity(identity string) (killed bool, err error) {
	return sandbox.KillIdentity(identity)
}
