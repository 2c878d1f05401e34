// Package executor runs a command on pseudo-terminals inside a sandbox and
// returns when nothing of it is left running.
//
// It decides nothing, keeps no output and knows no tool.
package executor

import (
	"context"
	"io"
	"net"
	"time"

	"github.com/toold/toold/sandbox"
)

// Terminal is how a command's three standard descriptors are connected.
type Terminal int

// The terminal modes.
const (
	Split  Terminal = iota // stdin+stdout on the controlling terminal, stderr on a second one
	Single                 // one terminal for all three: exact order, job control
	Off                    // pipes; no terminal at all
)

// String returns the mode's name on the wire.
func (t Terminal) String() string { return [...]string{"split", "single", "off"}[t] }

// Command is one command to run.
type Command struct {
	Script   string // run by bash --noprofile --norc; must not hold NUL
	Dir      string // absolute; must exist
	DirIs    string // which folder Dir must be, as sandbox.Pin tells; "" = whichever is there
	Env      []string
	Terminal Terminal
	Rows     uint16 // of the terminal; 0 = 40
	Cols     uint16 // of the terminal; 0 = 120
	Stdin    bool   // standard input stays open for Input; else it is at its end from the start

	// WaitAll makes the command last as long as any of its processes, not only
	// as long as its shell: for what is started to run on.
	WaitAll bool

	Timeout time.Duration // 0 = none
	Grace   time.Duration // between TERM and KILL; 0 = 2 s
	Sandbox sandbox.Profile

	// Stdout and Stderr take the output, from one goroutine and never after Run has returned, in
	// the order in which it was written (see Exit.Exact). They take turns at line ends; an
	// unfinished line is passed on when the other stream was quiet for 20 ms. They must not block.
	Stdout, Stderr io.Writer
	// Starting, if set, is called before anything of the command runs, with the identity of
	// the process that waits to run it (see Started). An error means that it must not run,
	// and Run returns it. It is called again when another process has to be made.
	Starting func(identity string) error
	// Started, if set, is called once when the command runs.
	Started func(Started)
	// Waiting, if set, is called when a program of the command begins to wait for
	// input, and again when it goes on. Like Started it must not block.
	Waiting func(Waiting)
	// Loopback, if set, has the servers of other commands that this one may reach. With
	// Lends, the name of this one there, others may reach its servers.
	Loopback *sandbox.Loopback
	Lends    string
	// Connect, if set, serves the doors of a Sandbox with Ports (see
	// sandbox.Process.Doors) until ctx ends, when the command has, and returns when
	// nothing of it is left running. Without it nothing answers there.
	Connect func(ctx context.Context, names net.PacketConn, ports []net.Listener)
	// Input, if set, delivers input, signals and window sizes until it is
	// closed or the command ends.
	Input <-chan Input
	// Abort, if set, ends the command at once when it is closed, by KILL and without
	// Grace.
	Abort <-chan struct{}
}

// Started identifies the running command's helper process.
type Started struct {
	PID      int
	Identity string // pid, start time and boot id; see KillIdentity
	Sandbox  sandbox.Report
}

// Waiting tells that a program waits for input. That it does is read from the
// kernel: it sleeps in a read of the command's terminal or pipe, or it polls while
// the terminal gives single keys. It is noticed after 0.7 s without output.
type Waiting struct {
	Waits   bool   // false: it goes on
	Kind    string // "line", "password", or "tui" for one that takes single keys
	Since   time.Time
	Process Process
}

// Input is data, the end, a signal or a window size for a running command. What it has not read
// is kept, so the sender has to bound that. Unread data holds up no signal and no size; data sent
// after one of these is given after it was carried out.
type Input struct {
	Data       []byte
	EOF        bool
	Signal     string // "SIGINT" …, to the foreground process group
	ToShell    bool   // Signal goes to the command itself, not to what it started
	Rows, Cols uint16 // both set: the window's new size

	// Taken, if set, is called when Data was given to the command's terminal or
	// pipe, or cannot be any more. It is not called once Run has returned.
	Taken func()
}

// Reason tells what ended a command.
type Reason int

// The reasons.
const (
	Exited   Reason = iota // by itself, or by a signal not sent by Run
	TimedOut               // Timeout passed
	Stopped                // ctx ended; context.Cause tells why
	Starved                // it waited for input where none can come
	Aborted                // Abort was closed
)

// Exit is how a command ended. Limit is "machine" when it was killed while the kernel killed
// processes because the machine had no memory left.
type Exit struct {
	Code      int    // 128+n when a signal ended it
	Signal    string // "SIGKILL"; empty when it exited
	Reason    Reason
	Leftovers []Process // outlived the command and were killed
	Waiting   Waiting   // Waits: for what it waited when it was made to end
	Limit     string    // "memory": it was killed for that limit; "processes": it had as many as it may have; "machine": see below
	Lost      bool      // its helper was killed from outside, and all of it with the helper
	Refused   []string  // local sockets of the machine that it was kept from
	Borrowed  []string  // the names of commands of Loopback whose servers it could reach
	Stuck     bool      // processes of it wait in the kernel, killed but not gone
	Exact     bool      // the lines of Stdout and Stderr were passed on in the order of the command's writes
	Duration  time.Duration
	Sandbox   sandbox.Report
}

// Process is one process of a command.
type Process = sandbox.Member
