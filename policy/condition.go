package policy

import "fmt"

// The profiles that a rule may name, strictest first.
const (
	profileReadOnly  = "read-only"
	profileWorkspace = "workspace-write"
)

// condition adds to a decision what the rules demand of a call beside it: they
// are asked all, not only the one that decided, so that their order has no
// meaning and no demand is lost behind another rule.
func (p *Policy) condition(effects []Effect, d *Decision) {
	if !p.conditional || d.Action == Deny {
		return
	}
	demands := func(r *rule) {
		d.Always = d.Always || r.Always && d.Action == Ask
		d.Profile = stricter(d.Profile, r.Profile)
	}
	for _, e := range effects {
		p.eachBlocking(e, func(r *rule, _ Action, _ bool, _ []Word) { demands(r) })
		if e.Kind == Exec {
			p.allowingCommands(e, func(r *rule) bool {
				demands(r)
				return true
			})
		}
	}
	if d.Always {
		d.Reason += " It is asked every time."
	}
	if d.Profile != "" {
		d.Reason += fmt.Sprintf(" It runs in the %s sandbox.", d.Profile)
	}
}

// stricter returns the stricter of two profiles.
func stricter(a, b string) string {
	switch {
	case a == "":
		return b
	case b == "" || a == profileReadOnly:
		return a
	}
	return b
}
