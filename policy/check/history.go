package check

import (
	_ "embed"
	"strings"
	"time"

	"github.com/toold/toold/policy"
)

// Event is one recorded call.
type Event struct {
	ID, Client, Agent string
	Hash              string // of tool and arguments; calls with the same hash are equal
	Text              string
	At                time.Time

	ByPerson bool // decided by a person, possibly before the request
	Allowed  bool
	Altered  bool // ran with an escalation or other arguments
	Worked   bool // ran and did not fail
}

// Past is a recorded call that may have been made several times.
type Past struct {
	Event    // the latest one decided by a person, otherwise the latest one
	Effects  []policy.Effect
	Count    int       // number of calls
	Approved int       // number of calls that a person approved and that succeeded
	Last     time.Time // time of the latest of those
	Refused  bool      // a person refused a later one
}

// History contains recorded calls. The zero value is empty.
type History struct {
	Calls []Past
	index map[string]int
}

// Add adds a call. Calls must be added in order of time. A new call is skipped if effects returns an error.
func (h *History) Add(e Event, effects func() ([]policy.Effect, error)) {
	i, known := h.index[e.Hash]
	if !known {
		does, err := effects()
		if err != nil {
			return
		}
		if h.index == nil {
			h.index = make(map[string]int)
		}
		i = len(h.Calls)
		h.index[e.Hash] = i
		h.Calls = append(h.Calls, Past{Event: e, Effects: does})
	}
	p := &h.Calls[i]
	p.Count++
	if e.ByPerson || !p.ByPerson {
		p.Event = e
	}
	switch {
	case e.ByPerson && !e.Allowed:
		p.Refused = true
	case e.ByPerson && e.Worked && !e.Altered:
		p.Approved, p.Last, p.Refused = p.Approved+1, e.At, false
	}
}

// Difference is a recorded call that another policy decides differently.
type Difference struct {
	Call   string        `json:"tool_call_id"`
	Text   string        `json:"call"`
	Before policy.Action `json:"before"`
	After  policy.Action `json:"after"`
	Rule   string        `json:"rule"`
	Source string        `json:"source"`
}

// Compare returns the calls that next decides differently.
func (j *Judge) Compare(h *History, next *Judge) []Difference {
	list := []Difference{}
	for _, c := range h.Calls {
		before, after := c.decidedBy(j.Policy), c.decidedBy(next.Policy)
		if before.Action != after.Action {
			list = append(list, Difference{c.ID, c.Text, before.Action, after.Action, after.Rule, after.Source})
		}
	}
	return list
}

func (c Past) decidedBy(p *policy.Policy) policy.Decision {
	return p.For(c.Client, c.Agent).Decide(c.Effects)
}

// everyday lists common commands with which policies are compared, one per line.
//
//go:embed everyday.txt
var everyday string

// Shift is an everyday command that another policy decides differently.
type Shift struct {
	Command string        `json:"command"`
	Before  policy.Action `json:"before"`
	After   policy.Action `json:"after"`
	Rule    string        `json:"rule"`
}

// Shifts returns the everyday commands that next decides differently.
func (j *Judge) Shifts(next *Judge) (list []Shift) {
	for command := range strings.Lines(everyday) {
		command = strings.TrimSpace(command)
		effects, err := j.script(command)
		if err != nil {
			continue
		}
		before, after := j.Decide(effects), next.Decide(effects)
		if before.Action != after.Action {
			list = append(list, Shift{command, before.Action, after.Action, after.Rule})
		}
	}
	return list
}
