// Package executor runs a command on pseudo-terminals inside a sandbox and returns when none of
// its processes is left.
//
// It makes no decisions and stores no output.
package executor

import (
	"context"
	"io"
	"net"
	"time"

	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/sandbox/launch"
)

// Terminal is how a command's standard descriptors are connected.
type Terminal int

// The terminal modes.
const (
	Split  Terminal = iota // stdin+stdout on the controlling terminal, stderr on a second one
	Single                 // one terminal for all three: exact order, job control
	Off                    // pipes; no terminal
)

// String returns the mode's name on the wire.
func (t Terminal) String() string { return [...]string{"split", "single", "off"}[t] }

// Command is one command to run.
type Command struct {
	Script   string // for bash --noprofile --norc, without NUL
	Dir      string // absolute; must exist
	DirIs    string // identity from launch.Pin; "" = any
	Env      []string
	Terminal Terminal
	Rows     uint16 // 0 = 40
	Cols     uint16 // 0 = 120
	Stdin    bool   // stays open for Input; otherwise at EOF from the start

	// WaitAll makes the command last until all its processes have ended.
	WaitAll bool

	Timeout time.Duration // 0 = none
	Grace   time.Duration // between TERM and KILL; 0 = 2 s
	Sandbox sandbox.Profile

	// Stdout and Stderr receive the output from one goroutine, in the order of the writes (see
	// Exit.Exact), never after Run returns, and must not block. They alternate at line ends; an
	// unfinished line follows after 20 ms without output of the other.
	Stdout, Stderr io.Writer
	// Starting, if set, is called with the helper's Started.Identity before anything runs, once
	// per helper. If it fails, Run returns its error and runs nothing.
	Starting func(identity string) error
	// Started, if set, is called when the command runs.
	Started func(Started)
	// Waiting, if set, is called when a program starts or stops waiting for input. Like
	// Started it must not block.
	Waiting func(Waiting)
	// Loopback, if set, has the servers of other commands that this one may reach. With Lends,
	// others may reach its own under that name.
	Loopback *launch.Loopback
	Lends    string
	// Connect, if set, serves launch.Process.ProxyListeners until ctx ends with the command,
	// and returns when none of its goroutines is left. Nil = nothing answers there.
	Connect func(ctx context.Context, names net.PacketConn, ports []net.Listener)
	// Input, if set, is read until it is closed or the command ends.
	Input <-chan Input
	// Abort, if set, kills the command without Grace when it is closed.
	Abort <-chan struct{}
}

// Started identifies the running command's helper process.
type Started struct {
	PID      int    // of the helper; without one, of the shell
	Identity string // see KillIdentity
	Sandbox  sandbox.Report
}

// Waiting reports that a program reads the command's terminal or pipe, or polls it for single
// keys, for 0.7 s without output.
type Waiting struct {
	Waits   bool   // false: it stopped
	Kind    string // "line", "password", or "tui" for single keys
	Since   time.Time
	Process Process
}

// Input is data, EOF, a signal or a window size. Unread data is kept: the sender must bound it.
// Signals and sizes overtake data; data sent after one of these is written after it took effect.
type Input struct {
	Data       []byte
	EOF        bool
	Signal     string // such as "SIGINT", to the foreground process group
	ToShell    bool   // Signal goes to the shell alone
	Rows, Cols uint16 // the window size, if both are set

	// Taken, if set, is called when Data was written, or with false when it no longer can be, never
	// after Run returned.
	Taken func(taken bool)
}

// Reason is what ended a command.
type Reason int

// The reasons.
const (
	Exited Reason = iota // also by a signal that Run did not send
	TimedOut
	Stopped // ctx ended; see context.Cause
	Starved
	Aborted
)

// Exit is how a command ended.
type Exit struct {
	Code      int    // 128+n after a signal
	Signal    string // such as "SIGKILL"; "" = it exited
	Reason    Reason
	Leftovers []Process // outlived the command and were killed
	Waiting   Waiting   // what it waited for when it was stopped
	Limit     string    // "memory": killed for exceeding it; "processes": reached; "machine": killed while memory ran out
	Lost      bool      // its helper was killed from outside
	Refused   []string  // local sockets that it could not connect to
	Borrowed  []string  // names of Loopback that it could reach
	Stuck     bool      // killed processes are still blocked in the kernel
	Exact     bool      // the lines came in the order of the writes
	Duration  time.Duration
	Sandbox   sandbox.Report
}

// PoolCounts counts what a Pool has done.
type PoolCounts struct {
	Hits    int64 // calls that used a warm shell
	Started int64 // sandboxes started for calls without one
	Ahead   int64 // sandboxes started ahead of calls
	Waiting int64 // warm shells now
}

// Process is one process of a command.
type Process = launch.Member
