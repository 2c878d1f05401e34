// Package check tests policies: it finds rules with unexpected effects, finds what must change for a call to be allowed, replays
// recorded calls, and proposes rules. Every result is verified with the policy.
//
// It runs and writes nothing. A Judge provides the tools, the journal and the format of policy files.
package check

import (
	"encoding/json"

	"github.com/toold/toold/policy"
)

// Judge decides calls under one policy, and under changes of it.
type Judge struct {
	Policy *policy.Policy
	// Effects returns what a call of a tool does.
	Effects func(tool string, arguments json.RawMessage) ([]policy.Effect, error)

	Client, Agent string // client of the calls
}

// Decide judges effects as those of the client.
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

// With returns the judge with those changes that concern the user's file, or an error if the result is no policy.
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
