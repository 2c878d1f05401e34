package executor

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/toold/toold/sandbox"
)

func holding(t *testing.T, n int, mode Terminal, profile sandbox.Mode) (*Pool, Command) {
	t.Helper()
	c := inWorkspace(t, mode, profile)
	c.Script = "echo ran >ran; echo done"
	if n > 0 {
		return filled(t, n, c), c
	}
	p := NewPool(0, nil)
	t.Cleanup(p.Close)
	return p, c
}

func ran(c Command) bool {
	_, err := os.Stat(c.Dir + "/ran")
	return err == nil
}

// The end of its helper is the danger, since bash takes the end of its pipe for the beginning
// of the script.
func TestAHeldCommandNeverRuns(t *testing.T) {
	t.Parallel()
	for _, mode := range []Terminal{Split, Off} {
		for _, profile := range []sandbox.Mode{sandbox.WorkspaceWrite, sandbox.FullAccess} {
			for name, end := range map[string]func(*Reservation){
				"dropped":           func(h *Reservation) { h.Drop() },
				"its helper killed": func(h *Reservation) { _ = syscall.Kill(h.process.PID(), syscall.SIGKILL); h.Drop() },
			} {
				for _, waiting := range []int{0, 3} {
					p, c := holding(t, waiting, mode, profile)
					for range 3 {
						h := p.Reserve(c)
						if h.err != nil || h.waited != (waiting > 0) {
							t.Fatalf("%v, of a waiting shell: %t", h.err, h.waited)
						}
						end(h)
					}
					p.Close() // which waits until nothing of them is left
					if ran(c) {
						t.Errorf("%s, %s, %d shells waited: it was %s and has run", mode, profile, waiting, name)
					}
				}
			}
		}
	}
}

func TestAHeldCommandRunsAsAnyOther(t *testing.T) {
	t.Parallel()
	for _, waiting := range []int{0, 1} {
		p, c := holding(t, waiting, Split, sandbox.WorkspaceWrite)
		h := p.Reserve(c)
		var out bytes.Buffer
		c.Stdout = &out
		if e, err := h.Run(t.Context(), c); err != nil || e.Code != 0 || out.String() != "done\n" || !ran(c) {
			t.Errorf("%d shells waited: %+v, %v, printed %q", waiting, e, err, out.String())
		}
		h.Drop()
	}
}

func TestAnotherCommandThanTheHeldOneDoesNotRun(t *testing.T) {
	t.Parallel()
	p, c := holding(t, 1, Off, sandbox.WorkspaceWrite)
	h := p.Reserve(c)
	other := c
	other.Script += "; echo more"
	if _, err := h.Run(t.Context(), other); err == nil || !strings.Contains(err.Error(), "not the one") {
		t.Errorf("got %v", err)
	}
	p.Close()
	if ran(c) {
		t.Error("it ran")
	}
}

// Starting is called before anything runs, with the identity by which the helper can be killed.
// What it refuses does not run.
func TestACommandIsAnnouncedBeforeItStarts(t *testing.T) {
	t.Parallel()
	for _, mode := range []Terminal{Split, Off} {
		for _, profile := range []sandbox.Mode{sandbox.WorkspaceWrite, sandbox.FullAccess} {
			for _, waiting := range []int{0, 2} {
				p, c := holding(t, waiting, mode, profile)
				refusal := errors.New("not now")
				c.Starting = func(string) error { return refusal }
				if _, err := p.Run(t.Context(), c); !errors.Is(err, refusal) {
					t.Errorf("%s, %s, %d shells waited: refused, it ended with %v", mode, profile, waiting, err)
				}
				announced := ""
				c.Starting = func(identity string) error {
					if announced = identity; ran(c) {
						t.Errorf("%s, %s, %d shells waited: it ran before it was announced", mode, profile, waiting)
					}
					return nil
				}
				c.Started = func(s Started) {
					if s.Identity != announced || announced == "" {
						t.Errorf("%s, %s, %d shells waited: %q was announced, and %q started", mode, profile, waiting, announced, s.Identity)
					}
				}
				if e, err := p.Run(t.Context(), c); err != nil || e.Code != 0 || !ran(c) {
					t.Errorf("%s, %s, %d shells waited: %+v, %v", mode, profile, waiting, e, err)
				}
			}
		}
	}
}

func TestAWaitingShellThatFailsIsReported(t *testing.T) {
	t.Parallel()
	p, c := holding(t, 1, Off, sandbox.WorkspaceWrite)
	failed, reported := reporting()
	p.failed = failed
	h := p.Reserve(c)
	if h.err != nil || !h.waited {
		t.Fatalf("%v, of a waiting shell: %t", h.err, h.waited)
	}
	_ = syscall.Kill(h.process.PID(), syscall.SIGKILL)
	<-h.process.Exited()
	if exit, err := h.Run(t.Context(), c); err != nil || exit.Code != 0 || !ran(c) {
		t.Errorf("%v, %+v", err, exit)
	}
	if err := <-reported; !strings.Contains(err.Error(), "is gone") {
		t.Error(err)
	}
}

// TestACallThatCannotBeRecordedIsNotTriedAgain: the shell is not to blame.
func TestACallThatCannotBeRecordedIsNotTriedAgain(t *testing.T) {
	t.Parallel()
	p, c := holding(t, 1, Off, sandbox.WorkspaceWrite)
	h := p.Reserve(c)
	if h.err != nil || !h.waited {
		t.Fatalf("%v, of a waiting shell: %t", h.err, h.waited)
	}
	full, tries := errors.New("the disk is full"), 0
	c.Starting = func(string) error {
		tries++
		return full
	}
	if _, err := h.Run(t.Context(), c); !errors.Is(err, full) || tries != 1 || ran(c) {
		t.Errorf("%v, after %d tries", err, tries)
	}
}
