// Package describe words calls, decisions, questions and quantities for people. Since others wrote much of what it
// describes, no such text moves a terminal's cursor or can be mistaken for toold's own.
package describe

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/toold/toold/internal/display"
	"github.com/toold/toold/message"
	"github.com/toold/toold/sandbox"
)

// CallState returns the state or the result of a call.
func CallState(i message.CallInfo) string {
	switch {
	case i.State == message.CallQueued:
		return fmt.Sprintf("queued %d", i.Position)
	case i.State != message.CallEnded:
		return string(i.State)
	case i.ErrorType != nil:
		return string(*i.ErrorType)
	case i.ExitCode != nil:
		return fmt.Sprintf("exit %d", *i.ExitCode) + Denials(i.Denials)
	}
	return Status(i.ToolName, i.Outcome) + Denials(i.Denials)
}

// Status returns the status of a return. A call of judge is only decided; the caller carries it out or not.
func Status(tool, status string) string {
	if tool == "judge" && status == "success" {
		return "judged"
	}
	return status
}

// Denial describes what the sandbox refused.
func Denial(d message.Denial) string {
	n := sandbox.Denial{Kind: string(d.Kind), Op: d.Op, Target: d.Target, Exact: d.Exact, Setting: d.Setting, Hint: d.Hint}
	return n.Notice()
}

// Denials returns the number of denials, after a comma.
func Denials(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(", %d denied by the sandbox", n)
}

// Since returns the time since an RFC 3339 instant.
func Since(instant string) string {
	at, err := time.Parse(time.RFC3339Nano, instant)
	if err != nil {
		return "?"
	}
	return time.Since(at).Round(time.Second).String()
}

// Sandbox describes a confinement.
func Sandbox(r sandbox.Report) string {
	network := "network off"
	switch {
	case r.Network:
		network = "network on"
	case r.Proxy:
		network = "network by name (sandbox.egress)"
	}
	if len(r.Enforced) == 0 {
		return r.Profile + ", NOTHING IS ENFORCED, " + network
	}
	return fmt.Sprintf("%s, tier %s [%s], %s", r.Profile, r.Tier, strings.Join(r.Enforced, ", "), network)
}

// WireSandbox describes the confinement of a message.
func WireSandbox(s message.Sandbox) string {
	return Sandbox(sandbox.Report{Profile: s.Profile, Enforced: s.Enforced, Network: s.Network, Proxy: s.Proxy, Tier: s.Tier})
}

// Rule returns the rule that decided, or that no rule matched.
func Rule(id string) string {
	if strings.HasPrefix(id, "no rule ") {
		return id
	}
	return "rule " + id
}

// Decision describes who decided a call, how and why.
func Decision(d message.Decision) string {
	by := d.By
	if by == "beforehand" {
		by = "an answer given beforehand, which nobody checked"
	}
	if d.Person != "" {
		by += " (" + d.Person + ")"
	}
	text := fmt.Sprintf("%s by %s, %s (%s): %s", d.Action, by, Rule(d.Rule), d.Source, d.Reason)
	if d.Widened != nil {
		text += "; widened for this call: " + d.Widened.String()
	}
	return text
}

// Outcome describes how a call ended.
func Outcome(r message.ToolReturn) string {
	switch {
	case r.ErrorType != nil:
		return string(*r.ErrorType)
	case r.ExitCode != nil:
		return fmt.Sprintf("%s, exit code %d", r.Status, *r.ExitCode)
	}
	return Status(r.ToolName, r.Status)
}

// Size returns a number of bytes in KiB or MiB.
func Size(n int64) string {
	const mib = 1 << 20
	if n < mib {
		return fmt.Sprintf("%d KiB", (n+1023)>>10)
	}
	return fmt.Sprintf("%d MiB", (n+mib/2)/mib)
}

// Count returns a number with its noun.
func Count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Times returns "once" or "n times".
func Times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// Ended describes how a call ended, which processes remained and its confinement.
func Ended(ret message.ToolReturn) string {
	end := "done"
	if ret.ExitCode != nil {
		end = fmt.Sprintf("exit %d", *ret.ExitCode) + Denials(len(ret.Denials))
	}
	if ret.ErrorType != nil {
		end += " · " + string(*ret.ErrorType)
	}
	if n := len(ret.Leftovers); n > 0 {
		end += fmt.Sprintf(" · %d leftover %s killed", n, map[bool]string{true: "process", false: "processes"}[n == 1])
	}
	if ret.Sandbox != nil && ret.ExitCode == nil {
		end += " · sandbox " + WireSandbox(*ret.Sandbox)
	}
	return end
}

// Waits describes what a command waits for. typed means that standard input goes to it.
func Waits(w message.WaitingForInput, typed bool) string {
	what := cmp.Or(map[string]string{"password": "a password", "tui": "keys"}[w.Kind], "a line")
	if !typed {
		what += "; nothing can be typed here without --stdin"
	}
	return fmt.Sprintf("%s (process %d) waits for %s", display.Line(w.Command), w.PID, what)
}
