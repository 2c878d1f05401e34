// Package policy decides whether effects may happen.
//
// It knows nothing of tools, wires or clocks: a tool call is described to it as
// a list of effects, and it answers with one decision. It reads no files and
// resolves no paths (whoever makes an Effect has resolved it already), so that
// a decision can be replayed, explained and fuzzed.
package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/toold/toold/shell/programs"
)

// Word is one word of a command as far as it is known before it runs.
type Word = programs.Word

// PartNames is the Part of a tree of which only the directories are read: the names in them, not what is in the files.
const PartNames = programs.PartNames

// Action is what a decision orders. The zero value denies.
type Action int

// The actions, from the strictest to the most permissive.
const (
	Deny  Action = iota // does not run
	Ask                 // runs only when a person says so
	Allow               // runs
)

// actions are their words, in policy files and on the wire.
var actions = strings.Fields("deny ask allow")

// String returns the word of an action.
func (a Action) String() string {
	if a != Ask && a != Allow {
		a = Deny
	}
	return actions[a]
}

// MarshalText makes an Action travel as its word.
func (a Action) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText reads the word.
func (a *Action) UnmarshalText(text []byte) (err error) {
	*a, err = ParseAction(string(text))
	return err
}

// ParseAction reads the word of an action.
func ParseAction(s string) (Action, error) {
	if i := slices.Index(actions, s); i >= 0 {
		return Action(i), nil
	}
	return Deny, fmt.Errorf("unknown decision %q: expected allow, ask or deny", s)
}

// Kind says what an effect does.
type Kind int

// The kinds of effect. The zero value is the one that nothing can allow.
const (
	Opaque Kind = iota // cannot be known before it runs; no rule can allow it
	Exec               // a program or shell builtin runs with Argv
	Read               // a file or a directory is read
	Write              // a path is created, changed, renamed or removed
	Net                // a host is contacted
	Env                // an environment variable is set for a command
)

// kinds are their words.
var kinds = strings.Fields("opaque exec read write net env")

// String returns the kind's word, as shown to people and journalled.
func (k Kind) String() string { return kinds[k] }

// UnmarshalText reads the word of a kind.
func (k *Kind) UnmarshalText(text []byte) error {
	i := slices.Index(kinds, string(text))
	if i < 0 {
		return fmt.Errorf("unknown kind of effect %q", text)
	}
	*k = Kind(i)
	return nil
}

// MarshalText makes a Kind travel as its word.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// Effect is one thing that a tool call can do, as far as it is known before it runs. Which fields are set depends on Kind.
type Effect struct {
	Kind Kind     `json:"kind"`
	Argv []Word   `json:"argv,omitempty"` // Exec: the words; Argv[0] is the program
	Dirs []string `json:"dirs,omitempty"` // Exec: the possible working directories, absolute; empty = unknown

	// Read and Write carry two forms of one path: allow rules match Canonical only, ask and deny rules match either.
	Path      string `json:"path,omitempty"`      // absolute and lexically clean, as asked
	Canonical string `json:"canonical,omitempty"` // with every symbolic link resolved
	Unknown   bool   `json:"unknown,omitempty"`   // Read, Write: the path exists only at run time
	Tree      bool   `json:"tree,omitempty"`      // Read, Write: everything below the path as well
	// Part narrows Tree: PartNames, programs.PartSome, or the end that the names of the files have, such as ".go". "" = everything.
	Part string `json:"part,omitempty"`

	Host   string `json:"host,omitempty"`   // Net; empty = unknown
	Port   int    `json:"port,omitempty"`   // Net; 0 = the scheme's
	Scheme string `json:"scheme,omitempty"` // Net; empty = unknown
	Method string `json:"method,omitempty"` // Net, HTTP only; empty = unknown
	Name   string `json:"name,omitempty"`   // Env: the variable

	// Possible marks an effect that is suspected, not known: asking and denying rules apply to it, but it needs no rule that
	// allows it.
	Possible bool `json:"possible,omitempty"`

	Why    string `json:"why,omitempty"`    // Opaque: what could not be known, for people
	Code   bool   `json:"code,omitempty"`   // Opaque: only what code does that a named program is given
	Kept   bool   `json:"kept,omitempty"`   // Exec: what it removes or overwrites can be had again
	Absent bool   `json:"absent,omitempty"` // Exec: there is no such program
	Follow bool   `json:"follow,omitempty"` // Exec: the commands that it runs are effects of their own
	Source string `json:"source,omitempty"` // the part of the call that causes the effect, for people
}

// String says the effect in one line for people.
func (e Effect) String() string {
	switch e.Kind {
	case Exec:
		words := make([]string, len(e.Argv))
		for i, w := range e.Argv {
			words[i] = w.Text
			if w.Dynamic {
				words[i] += "…"
			}
		}
		return "run " + strings.Join(words, " ")
	case Read, Write:
		if e.Unknown {
			return e.Kind.String() + " a path known only at run time"
		}
		return e.Kind.String() + " " + e.Path
	case Net:
		if e.Host == "" {
			return "contact an unknown host"
		}
		return "contact " + e.Host
	case Env:
		return "set " + e.Name
	default:
		return "not analysable: " + e.Why
	}
}

// Decision is the verdict on a whole call: the strictest of its effects.
type Decision struct {
	Action Action `json:"action"`
	Rule   string `json:"rule"`   // id of the deciding rule or default, e.g. "push", "defaults.bash", "builtin:secrets"
	Source string `json:"source"` // where the rule is: "file:line", or "built-in"
	Reason string `json:"reason"` // one sentence for people and models
	Effect Effect `json:"effect"` // the effect that decided

	// Always reports that a person must answer this very call: an answer that was given for others does not count.
	Always bool `json:"always,omitempty"`
	// Profile names the sandbox that the rules want for the call; "" means the one that is configured. It never loosens that one.
	Profile string `json:"profile,omitempty"`
}
