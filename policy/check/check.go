// Package check tests policies: it finds rules with unexpected effects and the changes that would allow a call,
// replays recorded calls, and proposes rules. It verifies every result with the policy. It runs and writes nothing.
package check

import (
	"encoding/json"

	"github.com/toold/toold/policy"
)

// Judge decides on calls of a client under a policy, and under changes to the policy.
type Judge struct {
	Policy *policy.Policy
	// Effects returns the effects of a call.
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

// With returns a Judge with changes to the user's file. An error means that the result is not a valid policy.
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
