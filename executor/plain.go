package executor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/toold/toold/sandbox"
)

// plain is a command on systems without a helper: a child of this process, on pipes. Its processes are found by
// session and parents.
type plain struct {
	Command
	report sandbox.Report

	shell *exec.Cmd
	job   *job
	out   [2]*os.File // this process's ends
	input *os.File    // this process's end; nil = none
	begun time.Time
	last  atomic.Int64 // when output last arrived, in Unix nanoseconds

	mu     sync.Mutex
	merger *merger     // merges in the order of arrival
	due    *time.Timer // calls passDue
}

// After the exit, output of children is read until none arrived for plainQuiet and no child runs, but at most for
// plainMost.
const (
	plainQuiet = 60 * time.Millisecond
	plainMost  = 1500 * time.Millisecond
)

func runPlain(ctx context.Context, c Command, shell string, prefix []string, report sandbox.Report) (Exit, error) {
	if c.Terminal != Off {
		return Exit{}, fmt.Errorf("cannot run the command on a terminal (%q): on this system commands have pipes only; use \"terminal\": \"off\", or set terminal: off in the configuration", c.Terminal)
	}
	if ctx.Err() != nil {
		return c.neverRan(), nil
	}
	argv := slices.Concat(prefix, []string{shell}, bashArguments, []string{c.Script})
	p := &plain{Command: c, report: report, shell: &exec.Cmd{Path: argv[0], Args: argv, Dir: c.Dir, Env: c.Env}}
	if err := c.starting(""); err != nil {
		return Exit{}, err
	}
	if err := p.start(); err != nil {
		return Exit{}, fmt.Errorf("cannot start the command: %w", err)
	}
	return p.wait(ctx), nil
}

// start opens the pipes and starts the shell. After an error, nothing is open.
func (p *plain) start() (err error) {
	var ends []*os.File // ends of the shell
	defer func() {
		for _, f := range ends {
			f.Close()
		}
		if err != nil {
			p.close()
		}
	}()
	for i := range p.out {
		r, w, err := os.Pipe()
		if err != nil {
			return err
		}
		p.out[i], ends = r, append(ends, w)
	}
	p.shell.Stdout, p.shell.Stderr = ends[0], ends[1]
	if p.Stdin {
		r, w, err := os.Pipe()
		if err != nil {
			return err
		}
		p.shell.Stdin, p.input, ends = r, w, append(ends, r)
	}
	p.job, err = startJob(p.shell)
	return err
}

func (p *plain) close() {
	for _, f := range []*os.File{p.out[0], p.out[1], p.input} {
		f.Close() // nil is allowed
	}
}

func (p *plain) wait(ctx context.Context) Exit {
	p.begun = time.Now()
	p.last.Store(p.begun.UnixNano())
	if p.Started != nil {
		p.Started(Started{PID: p.shell.Process.Pid, Sandbox: p.report})
	}
	p.merger = newMerger(false, p.pass)
	p.due = time.AfterFunc(time.Hour, p.passDue) // passLocked sets the time
	defer p.due.Stop()
	eof := p.read()
	done := make(chan struct{})
	var feeder sync.WaitGroup
	// Ends when Input is closed or done is, and with the pipe.
	feeder.Go(func() { feed(p.Input, done, p.control, p.write) })
	reason := p.awaitExit(ctx)
	if reason == Exited {
		p.settle(ctx, eof)
	}
	left := p.job.end()
	p.drain(eof)
	p.mu.Lock()
	p.merger.close(time.Since(p.begun))
	p.mu.Unlock()
	close(done)
	p.input.Close() // nil is allowed
	feeder.Wait()
	p.close()
	return p.exit(reason, left)
}

// drain waits for the end of the output. An escaped process may keep it open; then drain returns when nothing has
// arrived for plainMost.
func (p *plain) drain(eof <-chan struct{}) {
	for {
		rest := plainMost - p.idle()
		select {
		case <-eof:
			return
		case <-time.After(max(rest, 0)):
		}
		if p.idle() < plainMost {
			continue
		}
		for _, out := range p.out {
			_ = out.SetReadDeadline(time.Unix(1, 0))
		}
		<-eof
		return
	}
}

func (p *plain) idle() time.Duration {
	return time.Since(time.Unix(0, p.last.Load()))
}

// read starts the readers of the output. eof is closed when they have ended.
func (p *plain) read() (eof <-chan struct{}) {
	var readers sync.WaitGroup
	for s := range p.out {
		// Ends at the end of the stream or with its deadline.
		readers.Go(func() { p.copy(s) })
	}
	all := make(chan struct{})
	// Ends after the readers.
	go func() {
		readers.Wait()
		close(all)
	}()
	return all
}

func (p *plain) copy(s int) {
	buf := make([]byte, 32<<10)
	for {
		n, err := p.out[s].Read(buf)
		if n > 0 {
			p.last.Store(time.Now().UnixNano())
			p.add(s, buf[:n])
		}
		if err != nil {
			return
		}
	}
}

func (p *plain) add(s int, b []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(b) > 0 {
		n := copy(p.merger.space(s), b)
		p.merger.added(s, n, time.Since(p.begun))
		p.passLocked()
		b = b[n:]
	}
}

func (p *plain) passDue() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.passLocked()
}

func (p *plain) passLocked() {
	p.merger.settle(time.Since(p.begun))
	if due, waits := p.merger.due(); waits {
		p.due.Reset(max(0, due-time.Since(p.begun)))
	}
}

// The caller holds mu.
func (p *plain) pass(s int, b []byte) {
	if to := []io.Writer{p.Stdout, p.Stderr}[s]; to != nil {
		_, _ = to.Write(b) // an error of the writer must not stop the command
	}
}

func (p *plain) awaitExit(ctx context.Context) Reason {
	exited := make(chan struct{})
	// Ends with the shell, which job.kill ensures.
	go func() {
		_ = p.shell.Wait() // ProcessState has the result
		p.job.gone()
		for p.WaitAll && p.job.alive() {
			time.Sleep(plainQuiet)
		}
		close(exited)
	}()
	var timeout <-chan time.Time
	if p.Timeout > 0 {
		timeout = time.After(p.Timeout)
	}
	reason := Exited
	select {
	case <-exited:
		return Exited
	case <-timeout:
		reason = TimedOut
	case <-ctx.Done():
		reason = Stopped
	case <-p.Abort:
		reason = Aborted
	}
	if reason != Aborted {
		p.job.terminate()
	}
	for left := cmp.Or(p.Grace, defaultGrace); reason != Aborted && left > 0 && p.job.alive(); left -= plainQuiet {
		time.Sleep(min(left, plainQuiet))
	}
	p.job.kill()
	<-exited
	return reason
}

// settle waits for the last output of children of a command that exited.
func (p *plain) settle(ctx context.Context, eof <-chan struct{}) {
	ctx, cancel := context.WithTimeout(ctx, plainMost)
	defer cancel()
	ended := time.Now()
	for {
		rest := plainQuiet - min(p.idle(), time.Since(ended))
		if rest <= 0 {
			if !p.job.runnable() {
				return
			}
			rest = plainQuiet
		}
		select {
		case <-eof:
			return
		case <-ctx.Done():
			return
		case <-time.After(rest):
		}
	}
}

// control carries out a signal, and reports whether nothing is left to write. It ignores window sizes.
func (p *plain) control(in Input) bool {
	if in.Signal != "" {
		p.job.signal(in.Signal, in.ToShell)
		return true
	}
	return len(in.Data) == 0 && !in.EOF
}

func (p *plain) write(in Input) (taken bool) {
	if p.input == nil {
		return false
	}
	_, err := p.input.Write(in.Data) // an error means that the command ended or closed its input
	if in.EOF {
		p.input.Close()
	}
	return err == nil
}

func (p *plain) exit(reason Reason, left []Process) Exit {
	e := Exit{Reason: reason, Sandbox: p.report, Leftovers: left}
	status, known := syscall.WaitStatus(0), false
	if state := p.shell.ProcessState; state != nil {
		status, known = state.Sys().(syscall.WaitStatus)
	}
	e.Code, e.Signal = endOf(status, known)
	return e
}

func plainShell() (string, error) {
	if path, err := findShell(); err == nil {
		return path, nil
	}
	path, err := exec.LookPath("bash")
	if err != nil {
		return "", errors.New("cannot find bash: install it, and put its directory into the PATH of toold")
	}
	return path, nil
}
