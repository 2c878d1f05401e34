package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/toold/toold/policy"
)

// Missing is all that must change before a call is allowed.
type Missing struct {
	Obstacles []policy.Obstacle // none: it is allowed
	// Proved reports that the changes were made and tried, and that the call is allowed
	// with them.
	Proved bool
}

// maxRounds bounds how often a policy is looked at again after changes.
const maxRounds = 6

// Missing finds out what must change before effects are allowed.
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
		next, err := tried.With(added...)
		if len(added) == 0 || err != nil {
			return m
		}
		tried = next
	}
	return m
}

// add notes the obstacles that are not known yet, and returns their changes. New rules
// get ids that differ.
func (m *Missing) add(j *Judge, found []policy.Obstacle) (changes []policy.Change) {
	for _, o := range found {
		known := slices.ContainsFunc(m.Obstacles, func(k policy.Obstacle) bool {
			return k.Rule == o.Rule && k.Source == o.Source && k.Why == o.Why && sameChange(k.Change, o.Change)
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

// uses reports whether one of the changes is a rule with an id.
func (m *Missing) uses(id string) bool {
	return slices.ContainsFunc(m.Obstacles, func(o policy.Obstacle) bool { return o.Change.Rule.ID == id })
}

// sameChange reports whether two changes come to the same, whatever a new rule is called.
func sameChange(a, b policy.Change) bool {
	a.Rule.ID, b.Rule.ID = "", ""
	return a.File == b.File && a.Text("") == b.Text("")
}

// Changes are the edits of the user's file that take the obstacles away.
func (m Missing) Changes() (list []policy.Change) {
	for _, o := range m.Obstacles {
		list = append(list, o.Change)
	}
	return list
}

// String is the list in one line, for people: all of it is needed. user is the name of
// the user's file.
func (m Missing) String(user string) string {
	if len(m.Obstacles) == 0 {
		return ""
	}
	var parts []string
	for _, o := range m.Obstacles {
		if o.Why != "" {
			return "none in the policy: " + o.Why
		}
		if text := o.Change.Text(user); !slices.Contains(parts, text) {
			parts = append(parts, text)
		}
	}
	text := strings.Join(parts, "; and ")
	if m.Proved {
		text += "; then it is allowed"
	}
	return text
}
