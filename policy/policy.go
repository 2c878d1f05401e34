// Package policy decides whether effects may happen.
//
// It is pure: a tool call is a list of effects, and the answer is one decision. It reads no files and resolves no paths (the maker of
// an Effect has resolved them), so that a decision can be replayed, explained and fuzzed.
package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/toold/toold/shell/programs"
)

// Word is one word of a command as far as it is known before it runs.
type Word = programs.Word

// PartNames is the Part of a tree of which only directories are read: names, not the content of files.
const PartNames = programs.PartNames

// Action is the result of a decision. The zero value denies.
type Action int

// The actions, from the strictest to the most permissive.
const (
	Deny  Action = iota // does not run
	Ask                 // runs only if a person approves
	Allow               // runs
)

// actions are their names, in policy files and on the wire.
var actions = strings.Fields("deny ask allow")

// String returns the name of an action.
func (a Action) String() string {
	if a != Ask && a != Allow {
		a = Deny
	}
	return actions[a]
}

// MarshalText returns the name of an action.
func (a Action) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText parses the name of an action.
func (a *Action) UnmarshalText(text []byte) (err error) {
	*a, err = ParseAction(string(text))
	return err
}

// ParseAction parses the name of an action.
func ParseAction(s string) (Action, error) {
	if i := slices.Index(actions, s); i >= 0 {
		return Action(i), nil
	}
	return Deny, fmt.Errorf("unknown decision %q: expected allow, ask or deny", s)
}

// Kind says what an effect does.
type Kind int

// The kinds of effect. The zero value can never be allowed.
const (
	Opaque Kind = iota // unknown before it runs; no rule can allow it
	Exec               // a program or shell builtin runs with Argv
	Read               // a file or a directory is read
	Write              // a path is created, changed, renamed or removed
	Net                // a host is contacted
	Env                // an environment variable is set for a command
)

// kinds are their names.
var kinds = strings.Fields("opaque exec read write net env")

// String returns the kind's name, as shown to people and journalled.
func (k Kind) String() string { return kinds[k] }

// UnmarshalText parses the name of a kind.
func (k *Kind) UnmarshalText(text []byte) error {
	i := slices.Index(kinds, string(text))
	if i < 0 {
		return fmt.Errorf("unknown kind of effect %q", text)
	}
	*k = Kind(i)
	return nil
}

// MarshalText returns the name of a kind.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// Effect is one thing that a tool call can do, as far as it is known before it runs. Which fields are set depends on Kind.
type Effect struct {
	Kind Kind     `json:"kind"`
	Argv []Word   `json:"argv,omitempty"` // Exec: the words; Argv[0] is the program
	Dirs []string `json:"dirs,omitempty"` // Exec: the possible working directories, absolute; empty: unknown

	// Read and Write have two forms of one path: allow rules match Canonical only, ask and deny rules match either.
	Path      string `json:"path,omitempty"`      // absolute and lexically clean, as requested
	Canonical string `json:"canonical,omitempty"` // with every symbolic link resolved
	Unknown   bool   `json:"unknown,omitempty"`   // Read, Write: the path exists only at run time
	Tree      bool   `json:"tree,omitempty"`      // Read, Write: everything below the path as well
	// Part narrows Tree: PartNames, programs.PartSome, or a file name ending such as ".go". "": everything.
	Part string `json:"part,omitempty"`

	Host   string `json:"host,omitempty"`   // Net; empty = unknown
	Port   int    `json:"port,omitempty"`   // Net; 0 = the scheme's
	Scheme string `json:"scheme,omitempty"` // Net; empty = unknown
	Method string `json:"method,omitempty"` // Net, HTTP only; empty = unknown
	Name   string `json:"name,omitempty"`   // Env: the variable

	// Possible marks a suspected effect: ask and deny rules apply to it, but it needs no allow rule.
	Possible bool `json:"possible,omitempty"`

	Why    string `json:"why,omitempty"`    // Opaque: what is unknown, for people
	Code   bool   `json:"code,omitempty"`   // Opaque: only the effects of code that a named program receives
	Kept   bool   `json:"kept,omitempty"`   // Exec: what it removes or overwrites can be restored
	Absent bool   `json:"absent,omitempty"` // Exec: the program does not exist
	Follow bool   `json:"follow,omitempty"` // Exec: the commands that it runs are separate effects
	Source string `json:"source,omitempty"` // the part of the call that causes the effect, for people
}

// String formats the effect in one line for people.
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
	Source string `json:"source"` // position of the rule: "file:line", or "built-in"
	Reason string `json:"reason"` // one sentence for people and models
	Effect Effect `json:"effect"` // the effect that decided

	// Always requires a person's answer for this very call: answers for others do not apply.
	Always bool `json:"always,omitempty"`
	// Profile is the sandbox that the rules require for the call; "": the configured one. It never loosens that one.
	Profile string `json:"profile,omitempty"`
}
