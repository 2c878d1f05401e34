package bash

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/toold/toold/executor"
	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/sandbox/egress"
	"github.com/toold/toold/sandbox/guard"
	"github.com/toold/toold/tools"
)

// mostDenials is how many denials a result tells.
const mostDenials = 16

// refused is what toold itself has kept from a call.
type refused struct {
	hosts   []egress.Refusal
	taken   []guard.Incident
	sockets []string
}

// addDenials tells in a result what the sandbox kept from the command: what toold
// refused itself, and of a command that failed what can be inferred besides.
func (v *invocation) addDenials(r *tools.Result, exit executor.Exit, by refused, complaints string) {
	all := v.exactly(exit, by)
	if exit.Code != 0 {
		all = append(all, v.inferred(exit, complaints)...)
	}
	told := map[string]bool{}
	for _, d := range all {
		if !told[d.Target] {
			told[d.Target] = true
			r.Denials = append(r.Denials, d)
		}
	}
	more := len(r.Denials) - mostDenials
	r.Denials = r.Denials[:min(len(r.Denials), mostDenials)]
	for _, d := range r.Denials {
		addLine(r, oneLine(d.Notice()))
	}
	if more > 0 {
		addLine(r, fmt.Sprintf("So it went with %d more.", more))
	}
	r.IsError = r.IsError || len(by.taken) > 0
}

// addBlind tells in a result that protected names could appear where nobody watches.
func (v *invocation) addBlind(r *tools.Result) {
	o := v.tool.options
	if !o.guarded(v.profile) || r.Sandbox == nil {
		return
	}
	why, unseen := o.Guard.Blind()
	if r.Sandbox.Unwatched = why; unseen {
		addLine(r, "Notice: "+why+".")
	}
	if v.blind != "" {
		addLine(r, "Notice: in the folder that was added for this call: "+v.blind+".")
	}
}

// addLine puts a line below those that stand in a result's text.
func addLine(r *tools.Result, line string) {
	r.Text = strings.TrimPrefix(r.Text+"\n"+line, "\n")
}

// oneLine makes all that a text holds visible, on one line.
func oneLine(text string) string { return strings.ReplaceAll(tools.Visible(text), "\n", `\n`) }

// exactly lists what toold refused itself.
func (v *invocation) exactly(exit executor.Exit, by refused) (all []sandbox.Denial) {
	if d, ok := v.metLimit(exit.Limit); ok {
		all = append(all, d)
	}
	for _, path := range by.sockets {
		all = append(all, deniedSocket(path, true))
	}
	for _, h := range by.hosts {
		all = append(all, refusedHost(h))
	}
	for _, i := range by.taken {
		all = append(all, takenAway(i))
	}
	return all
}

// metLimit is a limit that the helper keeps.
func (v *invocation) metLimit(name string) (d sandbox.Denial, ok bool) {
	l := v.profile.Limits
	switch name {
	case "memory":
		d = deniedLimit("memory_bytes", "use more memory", fmt.Sprintf("its processes together may use %d MiB, and were killed; let it do less at a time", l.MemoryBytes>>20))
	case "processes":
		d = deniedLimit("processes", "start more processes", fmt.Sprintf("the command had as many processes and threads as it may have, %d; let it start fewer at a time", l.Processes))
	}
	d.Exact = true
	return d, d.Kind != ""
}

// refusedHost is a host to which a connection was refused, or already its name.
func refusedHost(h egress.Refusal) sandbox.Denial {
	d := sandbox.Denial{Kind: sandbox.DeniedName, Op: "look up", Target: h.Host, Exact: true, Setting: "sandbox.egress", Hint: h.Why.Error()}
	if h.Port != 0 {
		d.Kind, d.Op, d.Target = sandbox.DeniedHost, "connect to", net.JoinHostPort(h.Host, strconv.Itoa(int(h.Port)))
	}
	if h.Address.IsValid() {
		d.Kind, d.Op = sandbox.DeniedHost, "connect to"
		if h.Others {
			d.Target = h.Address.String()
			d.Hint += "; the other addresses of " + h.Host + " were not refused"
		}
	}
	if by := (*sandbox.Denial)(nil); errors.As(h.Why, &by) {
		d.Setting, d.Hint = by.Setting, by.Hint
	} else if key := egressKey.FindString(d.Hint); key != "" {
		d.Setting = key
	}
	return d
}

// takenAway is what appeared where commands may not make it.
func takenAway(i guard.Incident) sandbox.Denial {
	became := "it was taken away and is kept in " + i.Kept
	switch {
	case i.Err != nil:
		became = fmt.Sprintf("it could not be taken away (%v): tell the user to look at it", i.Err)
	case i.Kept == "":
		became = "it is still there: tell the user to look at it"
	}
	return sandbox.Denial{
		Kind: sandbox.DeniedProtected, Op: "make", Target: i.Path, Exact: true, Setting: "sandbox.protect",
		Hint: fmt.Sprintf("it appeared while this call ran, and %s; %s. Commands may not make what other programs run or obey (sandbox.protect in the configuration); where it is needed, use write_file: the user is asked", i.Why, became),
	}
}
