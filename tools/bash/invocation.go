package bash

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/toold/toold/executor"
	"github.com/toold/toold/internal/display"
	"github.com/toold/toold/internal/redact"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/sandbox/escalation"
	"github.com/toold/toold/tools"
)

type invocation struct {
	tool       *tool
	script     string
	background bool
	dir        string
	dirIs      string   // identity of dir; see launch.Pin
	pinned     *os.File // open so that dirIs is not reused
	timeout    time.Duration
	terminal   executor.Terminal
	stdin      bool
	effects    []policy.Effect
	profile    sandbox.Profile // set by Prepare
	preparation
}

func (v *invocation) Effects() []policy.Effect { return v.effects }

// Cwd returns the directory in which the command runs.
func (v *invocation) Cwd() string { return v.dir }

func (v *invocation) Traits() tools.Traits {
	return tools.Traits{Background: v.background, Input: v.stdin}
}

func (v *invocation) EscalationLimits(b escalation.Limits) escalation.Limits { return b }

func (v *invocation) Text() string { return display.Visible(v.script) }

func (v *invocation) Execute(ctx context.Context, io tools.IO) (r tools.Result) {
	defer v.pinned.Close() // may be nil
	if !v.prepared {
		v.Prepare(ctx, io)
	}
	if v.failure != nil {
		return v.failed(tools.Result{Terminal: v.terminal.String()}, v.failure)
	}
	command := v.command()
	command.Starting = io.Starting
	command.Started, command.Waiting, command.Input = v.started(io), io.Waiting, io.Input
	out, complaints := &tail{output: output{io, tools.Stdout}}, &tail{output: output{io, tools.Stderr}}
	command.Stdout, command.Stderr = out, complaints
	command.Abort = v.watched.violated
	network := v.network(io)
	command.Connect = network.Serve
	command.Loopback, command.Lends = io.Loopback, io.Lends
	var exit executor.Exit
	defer func() {
		v.unwatch()
		by := refused{hosts: network.Refusals(), seen: v.seen, sockets: exit.Refused}
		v.addDenials(&r, exit, by, out.text()+"\n"+complaints.text())
		v.addBlind(&r)
	}()
	exit, err := v.reservation.Run(ctx, command)
	return v.result(exit, err)
}

type output struct {
	io     tools.IO
	stream tools.Stream
}

func (o output) Write(p []byte) (int, error) {
	if o.io.Output != nil {
		o.io.Output(o.stream, p)
	}
	return len(p), nil
}

func (v *invocation) started(io tools.IO) func(executor.Started) {
	return func(s executor.Started) {
		if io.Started != nil {
			io.Started(tools.Started{PID: s.PID, Terminal: v.terminal.String(), Sandbox: s.Sandbox})
		}
	}
}

const lookFirst = "Check what it has done before you run it again."

func (v *invocation) result(exit executor.Exit, err error) tools.Result {
	r := tools.Result{Terminal: v.terminal.String(), Sandbox: &exit.Sandbox}
	if err != nil {
		return v.failed(r, err)
	}
	if exit.Sandbox.Profile == "" {
		r.Sandbox = v.unconfined()
	}
	r.Exit = &tools.Exit{Code: exit.Code, Signal: exit.Signal}
	r.Order = map[bool]string{true: "exact", false: "arrival"}[exit.Exact]
	r.IsError = exit.Code != 0
	switch {
	case exit.Reason == executor.TimedOut:
		r.IsError, r.Failure = true, tools.Timeout
		r.Text = fmt.Sprintf("Command timed out after %d ms and was stopped. Use a larger timeout (at most %d), or do less in one call.",
			v.timeout.Milliseconds(), v.longest().Milliseconds())
		if exit.Waiting.Waits {
			r.Text += " It was waiting for input: " + waitedFor(exit.Waiting) + "."
		}
	case exit.Reason == executor.Starved:
		r.IsError, r.Failure = true, tools.InputNeeded
		r.Text = "Command was stopped: " + waitedFor(exit.Waiting) + ", and it gets no input. Use the program's non-interactive form, supply the input in the script, or call again with \"stdin\": \"open\" and send the input."
	case exit.Reason == executor.Aborted:
		r.IsError, r.Failure = true, tools.ProtectedPath
		r.Text = "Command was stopped, since something was created or replaced that is protected or masked, or cannot be."
	case exit.Limit == "memory":
		r.IsError = true
		r.Text = fmt.Sprintf("Command was killed: it exceeded its memory limit. Exit code: %d", exit.Code)
	case exit.Reason == executor.Stopped:
		r.IsError, r.Failure = true, tools.Cancelled
		r.Text = "Command was stopped before it ended."
		if exit.Lost {
			r.Text += " The helper process of its sandbox ended first, perhaps before the command started. " + lookFirst
		}
	case exit.Limit == "machine":
		r.Text = fmt.Sprintf("Command was killed, probably by the kernel: the machine ran out of memory. Use less memory. Exit code: %d", exit.Code)
	case exit.Lost:
		r.Text = fmt.Sprintf("The command and everything it started were killed: the helper process of its sandbox was killed from outside toold. %s Exit code: %d", lookFirst, exit.Code)
	case exit.Signal != "":
		r.Text = fmt.Sprintf("Terminated by %s (exit code %d)", exit.Signal, exit.Code)
	case exit.Code != 0:
		r.Text = fmt.Sprintf("Exit code: %d", exit.Code)
	}
	addNotices(&r, exit)
	return r
}

// addNotices adds further information for the model.
func addNotices(r *tools.Result, exit executor.Exit) {
	if len(exit.Borrowed) > 0 {
		addLine(r, fmt.Sprintf("This call could reach the servers of the background calls %s at 127.0.0.1.", strings.Join(exit.Borrowed, ", ")))
	}
	if exit.Stuck {
		addLine(r, "Some of its processes were killed but still exist: they wait in the kernel for a device or file system that does not respond.")
	}
	if r.Leftovers = exit.Leftovers; len(r.Leftovers) > 0 {
		addLine(r, leftoverNotice(r.Leftovers))
	}
}

func (v *invocation) longest() time.Duration {
	if v.background {
		return v.tool.options.MaxBackground
	}
	return v.tool.options.MaxTimeout
}

func waitedFor(w executor.Waiting) string {
	what := cmp.Or(map[string]string{"password": "a password or another secret", "tui": "keys"}[w.Kind], "a line")
	return fmt.Sprintf("%s waits for %s at the terminal", shownCommand(w.Process), what)
}

// shownCommand masks secrets, because a program chose the text.
func shownCommand(p executor.Process) string {
	return display.Line(string(redact.Mask([]byte(p.Command))))
}

func leftoverNotice(left []executor.Process) string {
	const shown = 5
	var list []string
	for _, p := range left[:min(len(left), shown)] {
		list = append(list, shownCommand(p))
	}
	more := ""
	if len(left) > shown {
		more = fmt.Sprintf(" and %d more", len(left)-shown)
	}
	return fmt.Sprintf("Background processes do not outlive a call; stopped: %s%s. To keep something running, call bash with background: true.", strings.Join(list, "; "), more)
}

func (v *invocation) failed(r tools.Result, err error) tools.Result {
	r.IsError, r.Sandbox = true, v.unconfined()
	r.Failure, r.Text = tools.Internal, fmt.Sprintf("The command could not be run: %v.", err)
	if errors.Is(err, sandbox.ErrUnavailable) {
		r.Failure, r.Text = tools.SandboxUnavailable, fmt.Sprintf("The command did not run: %v.", err)
	}
	return r
}

func (v *invocation) unconfined() *sandbox.Report {
	p := v.profile
	return &sandbox.Report{Profile: p.Mode.String(), Enforced: []string{}, Network: p.Network, Tier: "none"}
}
