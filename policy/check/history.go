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
	Hash              string // of tool and arguments: calls with the same hash are equal
	Text              string
	At                time.Time

	ByPerson bool // possibly beforehand
	Allowed  bool
	Altered  bool // ran with an escalation or other arguments
	Worked   bool // ran and did not fail
}

// Past is a recorded call, possibly made several times.
type Past struct {
	Event    // the latest decided by a person, else the latest
	Effects  []policy.Effect
	Count    int       // how often it was made
	Approved int       // how often a person approved it and it worked
	Last     time.Time // the latest of those
	Refused  bool      // a person refused it after that
}

// History contains recorded calls. The zero value is empty.
type History struct {
	Calls []Past
	index map[string]int
}

// Add adds a call in order of time. It skips a new one if effects fails: the call cannot be judged.
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

// Difference is a recorded call with another decision under another policy.
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

// everyday are commands by which policies are compared, one a line.
//
//go:embed everyday.txt
var everyday string

// Shift is an everyday command with different decisions under two policies.
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
