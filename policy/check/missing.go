package check

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/toold/toold/policy"
)

// Missing lists what must change before a call is allowed.
type Missing struct {
	Obstacles []policy.Obstacle // empty if the call is allowed
	// Proved: the policy with these changes allows the call.
	Proved bool
}

const maxRounds = 6

// Missing returns what must change before effects are allowed.
func (j *Judge) Missing(effects []policy.Effect) (m Missing) {
	if len(effects) == 0 {
		d := j.Decide(effects)
		return Missing{Obstacles: []policy.Obstacle{{Action: d.Action, Rule: d.Rule, Source: d.Source, Why: d.Reason}}}
	}
	tried := j
	for range maxRounds {
		found := tried.rules(tried.Policy).Obstacles(effects)
		if len(found) == 0 {
			m.Proved = true
			return m
		}
		added := m.add(tried, found)
		if len(added) == 0 {
			return m
		}
		next, err := tried.With(added...)
		if err != nil {
			return m
		}
		tried = next
	}
	return m
}

func (m *Missing) add(j *Judge, found []policy.Obstacle) (changes []policy.Change) {
	for _, o := range found {
		known := slices.ContainsFunc(m.Obstacles, func(k policy.Obstacle) bool {
			same := k.Rule == o.Rule && k.Source == o.Source && k.Why == o.Why
			return same && sameChange(k.Change, o.Change)
		})
		if known {
			continue
		}
		for n := 2; o.Change.Rule.ID != "" && m.uses(o.Change.Rule.ID); n++ {
			o.Change.Rule.ID = fmt.Sprintf("%s-%d", strings.TrimRight(o.Change.Rule.ID, "-0123456789"), n)
		}
		m.Obstacles = append(m.Obstacles, o)
		if o.Why == "" && o.Change.File == j.Policy.User().Name {
			changes = append(changes, o.Change)
		}
	}
	return changes
}

func (m *Missing) uses(id string) bool {
	return slices.ContainsFunc(m.Obstacles, func(o policy.Obstacle) bool { return o.Change.Rule.ID == id })
}

func sameChange(a, b policy.Change) bool {
	a.Rule.ID, b.Rule.ID = "", ""
	return a.File == b.File && a.Text("") == b.Text("")
}

// Explanation is a decision with the changes that would allow the call.
type Explanation struct {
	policy.Decision
	Change  string      `json:"change,omitempty"` // Needs as one line
	Needs   []string    `json:"needs,omitempty"`
	Proved  bool        `json:"proved,omitempty"` // the changed policy allows the call
	Barred  string      `json:"barred,omitempty"` // why no change helps
	Effects []Explained `json:"effects"`
	Loosens bool        `json:"-"` // Change removes a protection
}

// Explained is one effect with its own decision.
type Explained struct {
	Kind   string        `json:"kind"`
	Text   string        `json:"text"`
	Source string        `json:"part,omitempty"`
	Action policy.Action `json:"action"`
	Rule   string        `json:"rule"`
	At     string        `json:"source"`
}

// Explain decides on a call, and on each of its effects.
func (j *Judge) Explain(tool string, arguments json.RawMessage) (Explanation, error) {
	effects, err := j.Effects(tool, arguments)
	if err != nil {
		return Explanation{}, fmt.Errorf("the call is refused before the policy sees it: %w", err)
	}
	return j.ExplainEffects(effects), nil
}

// ExplainEffects is Explain for known effects.
func (j *Judge) ExplainEffects(effects []policy.Effect) Explanation {
	e := Explanation{Decision: j.Decide(effects)}
	for _, one := range effects {
		d := j.Decide([]policy.Effect{one})
		e.Effects = append(e.Effects, Explained{one.Kind.String(), one.String(), one.Source, d.Action, d.Rule, d.Source})
	}
	if e.Action == policy.Allow {
		return e
	}
	missing := j.Missing(effects)
	e.Proved = missing.Proved
	for _, o := range missing.Obstacles {
		e.Barred = cmp.Or(e.Barred, o.Why)
		e.Loosens = e.Loosens || o.Change.Rule.ID == ""
		if text := o.Change.Text(j.Policy.User().Name); o.Why == "" && !slices.Contains(e.Needs, text) {
			e.Needs = append(e.Needs, text)
		}
	}
	switch e.Change = strings.Join(e.Needs, "; and "); {
	case e.Barred != "":
		e.Change = "none in the policy: " + e.Barred
	case e.Proved:
		e.Change += "; then it is allowed"
	}
	return e
}
