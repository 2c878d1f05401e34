//go:build linux

package suite

import (
	"context"
	"os"
	"time"
)

// Target is an implementation under test.
type Target interface {
	// Open starts it for a workspace. For an escape case it is called inside the World, which has only the files of the
	// machine and those of World.Keep.
	Open(ctx context.Context, w Workspace) (Session, error)
}

// Session is an implementation that has been started. It runs commands at the same time.
type Session interface {
	// Run runs a command to its end. The end of ctx cancels it. An error means that it did not run; NotApplicable, that
	// this implementation cannot run such commands.
	Run(ctx context.Context, c Command) (Result, error)

	// Close ends the implementation and waits for it.
	Close() error
}

// Workspace is where a target runs commands.
type Workspace struct {
	Dir     string   // the project: the directory of commands, which they may change
	Home    string   // of the user
	Scratch string   // what the target needs for itself
	Env     []string // additional variables of the target itself, which commands should not get
	Profile string   // workspace-write, read-only, network-off or full
	Window  *os.File // the user's terminal, from which the target is started; nil: none
}

// Command is a script of bash, and how it is run.
type Command struct {
	Script   string
	Dir      string
	Env      []string          // beside what commands have: NAME=value
	Terminal string            // off; single: one for all streams; split: one for stdout and one for stderr
	Timeout  time.Duration     // 0: none
	Live     func(data []byte) // gets what the command prints while it runs, from one goroutine, before Run returns; may be nil
}

// Result is how a command ended.
type Result struct {
	Stdout, Stderr string
	Exit           int    // 128 and the signal where a signal ended it, as shells count; -1: none is known
	Signal         string // that ended it: SIGKILL; UnknownSignal
	TimedOut       bool

	// Of toold's own cases:
	Text   string            // what a model reads of it, beside the streams
	Vars   map[string]string // for the scripts that check
	Return []byte            // the whole return of the target
}

// UnknownSignal is the signal of a target that reports the exit code only.
const UnknownSignal = "?"

// NotApplicable is the error of a Target that cannot do what a case needs. It says why.
type NotApplicable string

func (e NotApplicable) Error() string { return string(e) }

// Call is the call of a tool by name, which may run in the background.
type Call struct {
	Tool         string
	Arguments    map[string]any
	Conversation string
	Live         func(data []byte)
}

// Caller is a Session that has other tools than commands, and conversations, as toold's
// own cases need them.
type Caller interface {
	Call(ctx context.Context, c Call) (Result, error)
}

// Refusal is the error of a Target that exited because it cannot confine commands here.
type Refusal struct {
	Exit int // its exit code
	Err  error
}

func (r *Refusal) Error() string { return r.Err.Error() }
