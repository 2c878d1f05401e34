// Package check tries policies: it finds rules that do not do what they seem to,
// says what must change for a call to be allowed, replays recorded calls, and proposes
// rules. Everything that it says of a policy, it has asked the policy.
//
// It decides nothing, runs nothing and writes nothing. It knows neither tools nor the
// journal nor the format of policy files: a Judge brings what it needs of them.
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

	Client, Agent string // whose calls are judged
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

// With returns the judge with those changes that are of the user's file, or an error when that is no policy.
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
