// Package executor runs a command on pseudo-terminals inside of a sandbox, and returns when none of its processes is
// left. It makes no decisions and stores no output.
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
	Split  Terminal = iota // stdin and stdout are the controlling terminal, stderr is a second one
	Single                 // one terminal for all three: exact order, job control
	Off                    // pipes; no terminal
)

// String returns the name on the wire.
func (t Terminal) String() string { return [...]string{"split", "single", "off"}[t] }

// Command is a command to run.
type Command struct {
	Script   string // for bash --noprofile --norc; must not contain NUL
	Dir      string // absolute; must exist
	DirIs    string // identity from launch.Pin; "" = any
	Env      []string
	Terminal Terminal
	Rows     uint16 // 0 = 40
	Cols     uint16 // 0 = 120
	Stdin    bool   // stays open for Input; otherwise it is at EOF from the start

	// WaitAll makes the command last until all its processes have ended.
	WaitAll bool

	Timeout time.Duration // 0 = none
	Grace   time.Duration // time between TERM and KILL; 0 = 2 s
	Sandbox sandbox.Profile

	// Stdout and Stderr receive the output from one goroutine, in the order of the writes (see Exit.Exact), never
	// after Run has returned. They must not block. They alternate at line ends; an unfinished line follows after 20
	// ms without output of the other.
	Stdout, Stderr io.Writer
	// Starting, if set, is called with Started.Identity before anything runs, once per helper. If it returns an
	// error, Run returns that and runs nothing.
	Starting func(identity string) error
	// Started, if set, is called when the command runs.
	Started func(Started)
	// Waiting, if set, is called when a program starts or stops waiting for input. Like Started, it must not block.
	Waiting func(Waiting)
	// Loopback, if set, contains the servers of other commands that this one may reach. With Lends, others may reach
	// its servers under that name.
	Loopback *launch.Loopback
	Lends    string
	// Connect, if set, serves launch.Process.ProxyListeners until ctx ends with the command, and returns when its
	// goroutines have ended. nil = no connection is answered.
	Connect func(ctx context.Context, names net.PacketConn, ports []net.Listener)
	// Input, if set, is read until it is closed or the command ends.
	Input <-chan Input
	// Abort, if set, kills the command without Grace when it is closed.
	Abort <-chan struct{}
}

// Started identifies the helper process of a running command.
type Started struct {
	PID      int    // pid of the helper or, without a helper, of the shell
	Identity string // see KillIdentity
	Sandbox  sandbox.Report
}

// Waiting reports that a program has been reading the command's terminal or pipe, or polling it for single keys, for
// 0.7 s without output.
type Waiting struct {
	Waits   bool   // false = it no longer waits
	Kind    string // "line", "password", or "tui" for single keys
	Since   time.Time
	Process Process
}

// Input is data, EOF, a signal or a window size. Unread data is kept, so the sender must limit it. Signals and sizes
// overtake data; data sent after one is written after it took effect.
type Input struct {
	Data       []byte
	EOF        bool
	Signal     string // such as "SIGINT", for the foreground process group
	ToShell    bool   // Signal is for the shell alone
	Rows, Cols uint16 // window size, if both are set

	// Taken, if set, is called with true when Data was written, or with false when it no longer can be. It is never
	// called after Run has returned.
	Taken func(taken bool)
}

// Reason is what ended a command.
type Reason int

// The reasons.
const (
	Exited Reason = iota // by itself, or by a signal that Run did not send
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
	Leftovers []Process // processes that outlived the command and were killed
	Waiting   Waiting   // what it waited for when it was stopped
	Limit     string    // "memory": killed for exceeding it; "processes": reached; "machine": killed while the machine had no memory; "" = none
	Lost      bool      // its helper was killed from outside
	Refused   []string  // local sockets to which it could not connect
	Borrowed  []string  // names in Loopback that it could reach
	Stuck     bool      // killed processes are still blocked in the kernel
	Exact     bool      // the lines are in the order of the writes
	Sandbox   sandbox.Report
}

// PoolCounts counts the work of a Pool.
type PoolCounts struct {
	Hits    int64 // calls that used a warm shell
	Started int64 // sandboxes started for calls without a warm shell
	Ahead   int64 // sandboxes started before calls
	Waiting int64 // current number of warm shells
}

// Process is a process of a command.
type Process = launch.Member
