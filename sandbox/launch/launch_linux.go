package launch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/sandbox/cgroup"
	"github.com/toold/toold/sandbox/internal/helper"
	"github.com/toold/toold/sandbox/internal/snapshot"
)

func (p *Process) launch(c Command, spec helper.Spec, handed []*os.File) error {
	p.command = c
	if spec.External {
		var err error
		if p.via, err = newBwrap(c, &spec); err != nil {
			return &sandbox.StageError{Stage: launcherBwrap, Err: err, Advice: advise(launcherBwrap, 0)}
		}
		defer p.via.letGo()
	}
	return p.begin(spec, handed)
}

// begin continues launch after the preparation.
func (p *Process) begin(spec helper.Spec, handed []*os.File) error {
	c := p.command
	if spec.External || spec.Again {
		handed = append([]*os.File{c.Stdin, c.Stdout, c.Stderr}, handed...)
		spec.Handed = uint64(len(handed))
	}
	spec.User, spec.Group = uint64(os.Getuid()), uint64(os.Getgid())
	if p.again && p.adopt(spec, handed) {
		return nil
	}
	if err := p.clone(spec); err != nil {
		return err
	}
	var err error
	if p.identity, err = identityOf(p.PID()); err != nil {
		p.abandon()
		return unavailable("read the helper's identity", err)
	}
	if err := p.instruct(spec, handed); err != nil {
		p.abandon()
		return unavailable("instruct the helper", err)
	}
	return nil
}

// adopt runs the command in an idle helper, if one is suitable.
func (p *Process) adopt(spec helper.Spec, handed []*os.File) bool {
	for {
		t := p.command.Slots.take(p.kind)
		if t == nil {
			return false
		}
		p.slot = *t
		if p.cookie != "" {
			_ = p.cmd.Process.Signal(syscall.SIGCONT) // an unconfined process may have stopped it
		}
		if p.reuseView(spec, handed) == nil {
			p.used = true
			return true
		}
		p.slot.end()
		p.permit.close()
		p.slot, p.permit = slot{kind: p.kind}, nil
	}
}

// reuseView is instruct for a helper that has run a command: it keeps its view if a new one would be the same.
func (p *Process) reuseView(spec helper.Spec, handed []*os.File) error {
	if p.made.fits(p.command, spec.View) {
		spec.View, spec.Kept = helper.View{Terminal: spec.Terminal}, true
	} else {
		p.made.close()
		p.made = viewOf(p.command, spec.View)
	}
	return p.instruct(spec, handed)
}

func (p *Process) instruct(spec helper.Spec, handed []*os.File) (err error) {
	if p.made != nil && !spec.Kept {
		spec.Missing = p.missing(spec.Missing)
	}
	encoded, err := spec.Encode()
	if err != nil {
		return err
	}
	if spec.Reserve {
		if p.permit, err = newPermit(); err != nil {
			return err
		}
		handed = append(handed[:len(handed):len(handed)], p.permit.file)
	}
	if p.command.Extra != nil {
		handed = append(handed[:len(handed):len(handed)], p.command.Extra)
	}
	return p.sendSpec(encoded, handed)
}

// missing returns what did not exist when the view's input was recorded and, for a warm shell, when its own was.
func (p *Process) missing(toWarm []string) []string {
	list := p.made.was.Missing()
	if p.warm == nil {
		return list
	}
	return slices.DeleteFunc(list, func(path string) bool { return !slices.Contains(toWarm, path) })
}

// clone starts the helper, through bwrap if that creates the namespaces.
func (p *Process) clone(spec helper.Spec) error {
	c := p.command
	theirs, err := p.connect()
	if err != nil {
		return &sandbox.StageError{Stage: "control socket", Err: err}
	}
	defer theirs.Close()
	if p.again {
		p.mounts, p.made = snapshot.Take(nil, nil), viewOf(c, spec.View)
	}
	limits := cgroup.Limits{Processes: c.Profile.Limits.Processes, MemoryBytes: c.Profile.Limits.MemoryBytes}
	if p.via != nil && limits.Processes > 0 {
		limits.Processes++ // for bwrap itself
	}
	if p.group, err = c.Profile.Groups.New(limits); err != nil {
		p.control.Close()
		p.letGo()
		return unavailable(stageGroup, err)
	}
	p.cmd = helperCommand(c, spec, theirs)
	if p.via != nil {
		p.cmd = p.via.command(theirs)
	}
	if err = p.group.Start(p.cmd); err != nil {
		p.via.wait()
		p.control.Close()
		p.letGo()
		_ = p.group.End()
		return unavailable("clone", err)
	}
	if p.via == nil {
		return nil
	}
	if err = p.via.find(p.cmd.Process.Pid); err != nil {
		if !p.abandon() {
			return unavailable(launcherBwrap, err)
		}
		return p.unavailable(launcherBwrap, err)
	}
	return nil
}

// hear waits for the helper's first event, and starts listen for the others. Unless the event says that the command
// runs or waits for its script, the helper has ended.
//
// A helper that took the permit but ended before its first event may have started the command. Then the command
// counts as one whose helper was lost, not as one that never ran; its Report lists the minimum.
func (p *Process) hear(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startWithin, errSilent)
	defer cancel()
	event, err := p.await(ctx)
	if err != nil && !errors.Is(err, errUnheard) {
		if errors.Is(err, errSilent) {
			err = p.unavailable(stageHear, errSilent)
		}
		return err
	}
	p.permit.close()
	p.report = reportOf(p.command.Profile, event.ABI, event.Brokered)
	p.heard = true
	// Ends when the helper closes the control socket or becomes idle; End waits for that.
	go p.listen()
	return nil
}

// startWithin limits how long a helper may take to start its command. It is far longer than a successful start.
const startWithin = time.Minute

var errSilent = errors.New("the sandbox was not made within a minute, and its helper did not say why")

// errUnheard is returned by await for a command that may have started.
var errUnheard = errors.New("the helper started the command, perhaps, and is gone")

// await waits for the helper's first event. When ctx ends, it prevents a start that has not begun; otherwise it
// continues to wait.
func (p *Process) await(ctx context.Context) (helper.Event, error) {
	heard := make(chan struct{})
	// The setup can hang on a dead network mount; the caller must not.
	stop := context.AfterFunc(ctx, func() {
		if p.permit == nil || p.permit.revoke() || !closes(heard, endWithin) {
			p.destroy()
		}
	})
	event, err := p.firstWord()
	close(heard)
	if !stop() && err == nil && p.permit == nil {
		err = context.Cause(ctx)
	}
	if err == nil {
		return event, nil
	}
	if silent(err) && p.permit != nil && !p.permit.revoke() {
		p.destroy()
		return helper.Event{}, errUnheard
	}
	if p.abandon() && errors.Is(err, io.EOF) {
		err = p.unavailable(stageHear, endOf(p.cmd.ProcessState))
	}
	return helper.Event{}, p.startError(ctx, err)
}

func endOf(s *os.ProcessState) error {
	const fatal = 2 // exit status of Go's runtime
	if s.ExitCode() == fatal {
		return fmt.Errorf("it ended: %v, as it does where it can start no more threads (ulimit -u, pids.max), or has a fault", s)
	}
	return fmt.Errorf("it ended: %v", s)
}

func (p *Process) startError(ctx context.Context, err error) error {
	var dir *DirError
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("cannot start the command: %w", context.Cause(ctx))
	case p.used && !errors.As(err, &dir):
		return fmt.Errorf("%w: %w", ErrGone, err) // the next helper may succeed
	}
	return err
}

// stageHear is the stage of a helper that ended without an event.
const stageHear = "hear from the helper"

func silent(err error) bool {
	var failed *sandbox.StageError
	return errors.As(err, &failed) && failed.Stage == stageHear
}

func closes(c <-chan struct{}, d time.Duration) bool {
	select {
	case <-c:
		return true
	case <-time.After(d):
		return false
	}
}

// abandon ends a helper that runs no command, and reports whether it has ended. It must be called once.
func (p *Process) abandon() bool {
	p.abandoned = true
	p.takeBack()
	p.destroy()
	p.control.Close()
	p.proxyListeners.close()
	p.warm.close()
	p.permit.close()
	p.letGo()
	gone := p.reap()
	_ = p.group.End()
	return gone
}

func (p *Process) connect() (theirs *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	if err := unix.SetNonblock(fds[0], true); err != nil {
		unix.Close(fds[0])
		unix.Close(fds[1])
		return nil, err
	}
	p.control = os.NewFile(uintptr(fds[0]), "control")
	return os.NewFile(uintptr(fds[1]), "control"), nil
}

// firstWord returns the helper's first event, or an error unless the command runs.
func (p *Process) firstWord() (helper.Event, error) {
	event, err := p.first()
	// The command runs before EventStarted is sent, and may already have reached a limit.
	for ; err == nil && p.noteTrouble(event); event, err = p.next() {
	}
	switch {
	case err != nil:
		return helper.Event{}, unavailable(stageHear, err)
	case event.Kind == helper.EventStarted:
		return event, nil
	case event.Stage == helper.StageChdir:
		return helper.Event{}, &DirError{Dir: p.command.Dir, Err: failureOf(event)}
	}
	return helper.Event{}, unavailable(event.Stage, failureOf(event))
}

func failureOf(e helper.Event) error {
	if e.Errno != 0 {
		return syscall.Errno(e.Errno)
	}
	return errors.New(e.Text)
}

// sendSpec sends the specification in a memory file, since scripts are larger than a packet.
func (p *Process) sendSpec(spec []byte, handed []*os.File) error {
	file, err := memoryFile("specification", spec)
	if err != nil {
		return err
	}
	defer file.Close()
	return p.sendRights(nil, append([]*os.File{file}, handed...))
}

func (p *Process) sendRights(fds []int, files []*os.File) error {
	if len(files) == 0 {
		return p.orderWith(helper.Order{Kind: helper.OrderRun}, fds...)
	}
	raw, err := files[0].SyscallConn()
	if err != nil {
		return err
	}
	return control(raw, func(fd int) error { return p.sendRights(append(fds, fd), files[1:]) })
}

func control(raw syscall.RawConn, use func(fd int) error) error {
	var err error
	if outer := raw.Control(func(fd uintptr) { err = use(int(fd)) }); outer != nil {
		return outer
	}
	return err
}
