package policy

import (
	"slices"

	"github.com/toold/toold/shell/programs"
)

// withHosts adds the hosts that words of commands may name, where an ask or deny rule is about one.
func (p *Policy) withHosts(effects []Effect) []Effect {
	blocks := func(r *rule) bool { return r.Action != Allow }
	if !slices.ContainsFunc(p.sets, func(s *ruleSet) bool { return slices.ContainsFunc(s.net.list, blocks) }) {
		return effects
	}
	out := slices.Clip(effects)
	for _, e := range effects {
		started := e.Possible && e.Follow // has effects of its own
		if e.Kind != Exec || len(e.Argv) == 0 || started {
			continue
		}
		c := programs.Parse(e.Argv)
		for _, host := range c.MayContact(e.Argv) {
			named := Effect{Kind: Net, Host: host, Possible: true, Source: e.Source}
			if len(p.matches(named)) > 0 {
				out = append(out, named)
			}
		}
	}
	return out
}
