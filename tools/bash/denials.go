package bash

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/toold/toold/executor"
	"github.com/toold/toold/internal/display"
	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/sandbox/egress"
	"github.com/toold/toold/sandbox/protect"
	"github.com/toold/toold/tools"
)

const mostDenials = 16

type refused struct {
	hosts []egress.Refusal
	seen
	sockets []string
}

func (v *invocation) addDenials(r *tools.Result, exit executor.Exit, by refused, complaints string) {
	all := v.exactly(exit, by)
	if exit.Code != 0 {
		all = append(all, v.inferred(exit, complaints)...)
	} else {
		all = append(all, v.unchanged(exit, complaints)...)
	}
	listed := map[string]bool{}
	for _, d := range all {
		target := absolute(d.Target, v.dir)
		if !listed[target] {
			listed[target] = true
			r.Denials = append(r.Denials, d)
		}
	}
	more := len(r.Denials) - mostDenials
	r.Denials = r.Denials[:min(len(r.Denials), mostDenials)]
	for _, d := range r.Denials {
		addLine(r, display.Line(d.Notice()))
	}
	if more > 0 {
		addLine(r, fmt.Sprintf("And %d more.", more))
	}
	addProjects(r, by.taken)
	r.IsError = r.IsError || slices.ContainsFunc(by.taken, protect.Incident.Violation)
}

func (v *invocation) addBlind(r *tools.Result) {
	o := v.tool.options
	if !o.protects(v.profile) || r.Sandbox == nil {
		return
	}
	why, unseen := o.Protect.Unwatched()
	if r.Sandbox.Unwatched = why; unseen {
		addLine(r, "Notice: "+why+".")
	}
	if v.seen.blind != "" {
		addLine(r, "Notice: in the directory that was added for this call: "+v.seen.blind+".")
	}
}

func addLine(r *tools.Result, line string) {
	r.Text = strings.TrimPrefix(r.Text+"\n"+line, "\n")
}

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
	for _, m := range by.replaced {
		all = append(all, replaced(m))
	}
	for _, i := range by.taken {
		if i.Violation() {
			all = append(all, appeared(i))
		}
	}
	return all
}

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
	if by, is := errors.AsType[*sandbox.Denial](h.Why); is {
		d.Setting, d.Hint = by.Setting, by.Hint
	} else if key := egressKey().FindString(d.Hint); key != "" {
		d.Setting = key
	}
	return d
}

func appeared(i protect.Incident) sandbox.Denial {
	hint := fmt.Sprintf("%s (rule %s); %s", i.Why, i.Rule, became(i))
	if i.Rule == "" {
		instead := cmp.Or(i.Instead, "Commands may not create it (sandbox.protect in the configuration): "+sandbox.InsteadOf(i.Path))
		hint = fmt.Sprintf("it appeared while this call ran, and %s; %s. %s", i.Why, became(i), instead)
	}
	return sandbox.Denial{Kind: sandbox.DeniedProtected, Op: "make", Target: i.Path, Exact: true, Setting: cmp.Or(i.Rule, "sandbox.protect"), Hint: hint}
}

func became(i protect.Incident) string {
	switch {
	case i.Lost != nil:
		return fmt.Sprintf("it was removed, but not all of it was copied (%v): tell the user", i.Lost)
	case i.Err != nil:
		return fmt.Sprintf("it could not be removed (%v): ask the user to check it", i.Err)
	case i.Later:
		return "it is removed as soon as the concurrent calls have ended"
	case i.Gone:
		return "it is gone already"
	case i.Kept != "":
		return "it was removed, and a copy is in " + i.Kept
	}
	return "it is still there: ask the user to check it"
}

func addProjects(r *tools.Result, found []protect.Incident) {
	var own []string
	for _, i := range found {
		if i.Own {
			own = append(own, display.Line(i.Path))
		}
	}
	if len(own) > 0 {
		addLine(r, "Notice: this call created a project with files that other programs run or obey, protected from now on: "+strings.Join(own, ", ")+".")
	}
}
