package check

import (
	"encoding/json"
	"fmt"

	"github.com/toold/toold/policy"
)

// Explanation is a decision with what led to it, and what would make it allow.
type Explanation struct {
	policy.Decision
	Change  string      `json:"change,omitempty"` // Needs in one line
	Needs   []string    `json:"needs,omitempty"`  // all that must change for the call to be allowed
	Proved  bool        `json:"proved,omitempty"` // with these the call is allowed: it was tried
	Barred  string      `json:"barred,omitempty"` // why no change of the policy helps
	Effects []Explained `json:"effects"`

	loosens bool
}

// Loosens reports whether Change takes something away that protects: it does more than
// add rules.
func (e Explanation) Loosens() bool { return e.loosens }

// Explained is one effect and what it would get alone.
type Explained struct {
	Kind   string        `json:"kind"`
	Text   string        `json:"text"`
	Source string        `json:"part,omitempty"` // of the call
	Action policy.Action `json:"action"`
	Rule   string        `json:"rule"`
	At     string        `json:"source"`
}

// Explain judges a call, and each of its effects alone.
func (j *Judge) Explain(tool string, arguments json.RawMessage) (Explanation, error) {
	effects, err := j.Effects(tool, arguments)
	if err != nil {
		return Explanation{}, fmt.Errorf("the call is refused before the policy sees it: %w", err)
	}
	return j.ExplainEffects(effects), nil
}

// ExplainEffects is Explain for a call of which the effects are known.
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
	e.Change, e.Proved = missing.String(j.Policy.User().Name), missing.Proved
	for _, o := range missing.Obstacles {
		if o.Why != "" && e.Barred == "" {
			e.Barred = o.Why
		}
		e.loosens = e.loosens || o.Change.Rule.ID == ""
		if o.Why == "" {
			e.Needs = append(e.Needs, o.Change.Text(j.Policy.User().Name))
		}
	}
	return e
}
