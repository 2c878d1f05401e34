// Package executor runs a command on pseudo-terminals inside a sandbox and returns
// when none of its processes is left.
//
// It makes no decisions, stores no output and knows no tools.
package executor

import (
	"context"
	"io"
	"net"
	"time"

	"github.com/toold/toold/sandbox"
)

// Terminal is how a command's standard descriptors are connected.
type Terminal int

// The terminal modes.
const (
	Split  Terminal = iota // stdin+stdout on the controlling terminal, stderr on a second one
	Single                 // one terminal for all three: exact order and job control
	Off                    // pipes; no terminal
)

// String returns the mode's name on the wire.
func (t Terminal) String() string { return [...]string{"split", "single", "off"}[t] }

// Command is one command to run.
type Command struct {
	Script   string // run by bash --noprofile --norc; must not contain NUL
	Dir      string // absolute; must exist
	DirIs    string // the identity Dir must have, from sandbox.Pin; "" = any
	Env      []string
	Terminal Terminal
	Rows     uint16 // of the terminal; 0 = 40
	Cols     uint16 // of the terminal; 0 = 120
	Stdin    bool   // standard input stays open for Input; otherwise it is at EOF from the start

	// WaitAll makes the command last until all its processes have ended, not only its
	// shell.
	WaitAll bool

	Timeout time.Duration // 0 = none
	Grace   time.Duration // between TERM and KILL; 0 = 2 s
	Sandbox sandbox.Profile

	// Stdout and Stderr receive the output from one goroutine, in the order in which it
	// was written (see Exit.Exact), and never after Run returns. They alternate at line
	// ends; an unfinished line is passed on once the other stream was quiet for 20 ms.
	// They must not block.
	Stdout, Stderr io.Writer
	// Starting, if set, is called before anything of the command runs, with the
	// identity of its helper process (see Started). Run returns its error without
	// running the command. Starting is called again if another helper is needed.
	Starting func(identity string) error
	// Started, if set, is called once when the command runs.
	Started func(Started)
	// Waiting, if set, is called when a program of the command starts or stops waiting
	// for input. Like Started it must not block.
	Waiting func(Waiting)
	// Loopback, if set, contains the servers of other commands that this one may reach.
	// If Lends is set, others may reach its servers under that name.
	Loopback *sandbox.Loopback
	Lends    string
	// Connect, if set, serves the proxy listeners of a Sandbox with Ports (see
	// sandbox.Process.ProxyListeners) until ctx ends with the command, and returns when
	// none of its goroutines is left. If nil, nothing answers there.
	Connect func(ctx context.Context, names net.PacketConn, ports []net.Listener)
	// Input, if set, delivers input, signals and window sizes until it is closed or the
	// command ends.
	Input <-chan Input
	// Abort, if set, kills the command at once when it is closed, without Grace.
	Abort <-chan struct{}
}

// Started identifies the running command's helper process.
type Started struct {
	PID      int
	Identity string // pid, start time and boot id; see KillIdentity
	Sandbox  sandbox.Report
}

// Waiting reports that a program waits for input. The kernel shows it: the program
// sleeps in a read of the command's terminal or pipe, or polls it while the
// terminal is not line-buffered. It is noticed after 0.7 s without output.
type Waiting struct {
	Waits   bool   // false: it stopped waiting
	Kind    string // "line", "password", or "tui" for one that reads single keys
	Since   time.Time
	Process Process
}

// Input is data, EOF, a signal or a window size for a running command. Unread data
// is kept, so the sender must bound it. It does not delay signals and sizes; data
// sent after one of these is written after it took effect.
type Input struct {
	Data       []byte
	EOF        bool
	Signal     string // "SIGINT" …, to the foreground process group
	ToShell    bool   // Signal goes to the shell itself, not to its children
	Rows, Cols uint16 // both set: the new window size

	// Taken, if set, is called when Data was written to the command's terminal or pipe,
	// or no longer can be. It is not called after Run has returned.
	Taken func()
}

// Reason is what ended a command.
type Reason int

const (
	Exited   Reason = iota // by itself, or by a signal that Run did not send
	TimedOut               // Timeout passed
	Stopped                // ctx ended; context.Cause has the reason
	Starved                // it waited for input that cannot come
	Aborted                // Abort was closed
)

// Exit is how a command ended.
type Exit struct {
	Code      int    // 128+n when a signal ended it
	Signal    string // "SIGKILL"; empty when it exited
	Reason    Reason
	Leftovers []Process // outlived the command and were killed
	Waiting   Waiting   // Waits: what it waited for when it was stopped
	Limit     string    // "memory": killed for exceeding it; "processes": it reached that limit; "machine": killed while the kernel was killing processes for lack of memory
	Lost      bool      // its helper was killed from outside, and with it the command
	Refused   []string  // local sockets of the machine that it could not connect to
	Borrowed  []string  // names of Loopback whose servers it could reach
	Stuck     bool      // some of its processes were killed but are still blocked in the kernel
	Exact     bool      // the lines of Stdout and Stderr came in the order of the command's writes
	Duration  time.Duration
	Sandbox   sandbox.Report
}

// Process is one process of a command.
type Process = sandbox.Member
