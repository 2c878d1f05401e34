package policy

import (
	"fmt"
	"net/netip"
	"slices"
)

// Decide returns the strictest verdict on the effects of a call. A call without effects is denied. The order of rules
// and effects does not matter.
func (p *Policy) Decide(effects []Effect) Decision {
	if len(effects) == 0 {
		return p.explain(Effect{Why: "the call names no effects"}, verdict{action: Deny, id: "defaults.unanalysable"})
	}
	effects = p.withHosts(effects)
	var worst verdict
	var cause *Effect
	for i := range effects {
		if v := p.judge(&effects[i]); i == 0 || v.action < worst.action {
			worst, cause = v, &effects[i]
		}
		if worst.action == Deny {
			break
		}
	}
	d := p.explain(*cause, worst)
	p.condition(effects, &d)
	return d
}

type verdict struct {
	action Action
	rule   *rule  // nil for presets and defaults
	id     string // id of a preset or default
}

// judge decides on one effect. Ask and deny rules take precedence.
func (p *Policy) judge(e *Effect) verdict {
	if e.Kind == Opaque {
		if e.Code {
			return p.raised(p.unanalysable())
		}
		return p.unanalysable()
	}
	blocked, found, whole := p.blocking(e)
	if found && whole {
		return blocked
	}
	if rest := p.unblocked(*e); !found || rest.action < blocked.action {
		return rest
	}
	return blocked
}

func (p *Policy) unanalysable() verdict {
	return verdict{action: min(p.defaults.Unanalysable, Ask), id: "defaults.unanalysable"}
}

func (p *Policy) unblocked(e Effect) verdict {
	if e.Possible {
		return verdict{action: Allow, id: "no rule against it"}
	}
	switch e.Kind {
	case Exec:
		return p.judgeExec(e)
	case Read, Write:
		return p.judgePath(e)
	case Net:
		return p.judgeNet(e)
	default:
		return p.judgeEnv(e)
	}
}

// match is a matching ask or deny rule.
type match struct {
	*rule
	result Action // may be Ask although the rule denies
	whole  bool   // the rule applies to all of the effect; see blocksPath
	argv   []Word // of the matching command
}

// blocking returns the strictest match. whole is false if another rule may be stricter on the rest of e: the rule
// matches only a part of e, or can only tighten.
func (p *Policy) blocking(e *Effect) (worst verdict, some, whole bool) {
	worst.action = Allow
	for _, m := range p.matches(*e) {
		if p.excuses(m, *e) {
			continue
		}
		all := m.whole && !m.tightens
		more := all && !whole && m.result == worst.action
		if more || m.result < worst.action {
			worst, some, whole = verdict{action: m.result, rule: m.rule}, true, all
		}
	}
	return worst, some, whole
}

func (p *Policy) matches(e Effect) (list []match) {
	switch e.Kind {
	case Exec:
		return p.blockingCommands(e)
	case Read, Write:
		return p.blockingPaths(e)
	case Net:
		for _, r := range p.about(e.Host) {
			if r.Action != Allow && r.matchesHost(e, true) {
				list = append(list, match{rule: r, result: r.Action, whole: true})
			}
		}
	}
	return list
}

func (p *Policy) blockingPaths(e Effect) (list []match) {
	for _, s := range p.sets {
		for _, r := range s.blocks.find(e.Tree, e.Path, e.Canonical) {
			if action, whole, ok := r.blocksPath(e); ok {
				list = append(list, match{rule: r, result: action, whole: whole})
			}
		}
	}
	return list
}

func (p *Policy) judgePath(e Effect) verdict {
	byDefault, unknown, name := p.defaults.Read, p.defaults.UnknownRead, "read"
	if e.Kind == Write {
		byDefault, unknown, name = p.defaults.Write, p.defaults.UnknownWrite, "write"
	}
	if e.Unknown || e.Canonical == "" {
		return p.raised(verdict{action: unknown, id: "unknown_paths." + name})
	}
	for _, s := range p.sets {
		for _, r := range s.allows.find(e.Tree, e.Canonical) {
			if r.allowsPath(e) {
				return verdict{action: Allow, rule: r}
			}
		}
	}
	return verdict{action: byDefault, id: "defaults." + name}
}

func (p *Policy) judgeNet(e Effect) verdict {
	for _, r := range p.about(e.Host) {
		if r.Action == Allow && r.matchesHost(e, false) {
			return verdict{action: Allow, rule: r}
		}
	}
	v := verdict{action: p.defaults.Net, id: "defaults.net"}
	for _, s := range p.sets {
		i := slices.IndexFunc(s.net.list, func(r *rule) bool { return r.Action != Allow })
		if i >= 0 && e.Host == "" && v.action == Allow { // that rule may apply to the unknown host
			return verdict{action: Ask, rule: s.net.list[i], id: s.net.list[i].ID}
		}
	}
	// Without a network, loopback addresses are those of the call alone. A file may be a socket by an unknown name alone.
	address, err := netip.ParseAddr(e.Host)
	loopback := e.Host == "localhost" || err == nil && address.IsLoopback()
	if e.Unknown || loopback && p.confinement.Offline {
		return p.raised(v)
	}
	return v
}

func (p *Policy) judgeEnv(e Effect) verdict {
	for _, s := range p.sets {
		// A wildcard does not allow variables that make programs run code.
		if s.env[e.Name] || matchesAny(s.envLike, e.Name) && !IsDangerousEnv(e.Name) {
			return verdict{action: Allow, id: "env.allow"}
		}
	}
	switch {
	case IsDangerousEnv(e.Name) || e.Name == "":
		return p.raised(verdict{action: min(p.defaults.UnknownEnv, Ask), id: "env.dangerous"})
	case matchesAny(builtin().lists["neutral"], e.Name):
		return verdict{action: Allow, id: "env.neutral"}
	}
	return p.raised(verdict{action: p.defaults.UnknownEnv, id: "env.unknown"})
}

// The profiles that a rule may require, strictest first.
const (
	profileReadOnly  = "read-only"
	profileWorkspace = "workspace-write"
)

// condition adds the requirements of all matching rules, not only of the deciding one.
func (p *Policy) condition(effects []Effect, d *Decision) {
	if !p.conditional || d.Action == Deny {
		return
	}
	demands := func(r *rule) {
		d.Always = d.Always || r.Always && d.Action == Ask
		if d.Profile == "" || r.Profile == profileReadOnly { // the strictest one
			d.Profile = r.Profile
		}
	}
	for _, e := range effects {
		for _, m := range p.matches(e) {
			demands(m.rule)
		}
		for _, cp := range p.allowing(e) {
			if cp.allows(e) {
				demands(cp.rule)
			}
		}
	}
	if d.Always {
		d.Reason += " It is asked every time."
	}
	if d.Profile != "" {
		d.Reason += fmt.Sprintf(" It runs in the %s sandbox.", d.Profile)
	}
}
