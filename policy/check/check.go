// Package check tests policies: it finds rules with unexpected effects and what must change for a call to be allowed,
// replays recorded calls, and proposes rules. It verifies every result with the policy, and runs and writes nothing.
package check

import (
	"encoding/json"

	"github.com/toold/toold/policy"
)

// Judge decides calls of a client under one policy, and under changes of it.
type Judge struct {
	Policy *policy.Policy
	// Effects returns what a call of a tool does.
	Effects func(tool string, arguments json.RawMessage) ([]policy.Effect, error)

	Client, Agent string
}

// Decide returns the decision for the client.
func (j *Judge) Decide(effects []policy.Effect) policy.Decision {
	return j.rules(j.Policy).Decide(effects)
}

func (j *Judge) script(text string) ([]policy.Effect, error) {
	arguments, err := json.Marshal(map[string]string{"command": text})
	if err != nil {
		return nil, err
	}
	return j.Effects("bash", arguments)
}

func (j *Judge) rules(p *policy.Policy) *policy.Policy { return p.For(j.Client, j.Agent) }

// With applies the changes to the user's file. An error means that the result is no policy.
func (j *Judge) With(changes ...policy.Change) (*Judge, error) {
	next, user := *j, j.Policy.User()
	name := user.Name
	for _, c := range changes {
		if c.File == name {
			user = user.With(c)
		}
	}
	var err error
	next.Policy, err = j.Policy.With(user)
	return &next, err
}
