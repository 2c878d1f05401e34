// Package policy decides whether effects may happen.
//
// It is pure: it maps the effects of a call to one decision. It reads no files and resolves no paths; whoever creates
// an Effect does. So a decision can be replayed, explained and fuzzed.
package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/toold/toold/shell/programs"
)

// Word is a word of a command as far as it is known.
type Word = programs.Word

// PartNames is the Part of a tree of which only names are read, PartAttributes of a file without its content.
const PartNames, PartAttributes = programs.PartNames, programs.PartAttributes

// Action is the result of a decision. The zero value denies.
type Action int

// Strictest first.
const (
	Deny  Action = iota // does not run
	Ask                 // runs only if a person approves
	Allow               // runs
)

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

// The zero value is never allowed.
const (
	Opaque Kind = iota // not analysable; no rule can allow it
	Exec               // Argv runs
	Read               // a path is read
	Write              // a path is created, changed, renamed or removed
	Net                // a host is contacted
	Env                // a variable is set for a command
)

var kinds = strings.Fields("opaque exec read write net env")

// String returns the name of a kind.
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

// Effect is one possible effect of a tool call, as far as it is known. Kind determines which fields apply.
type Effect struct {
	Kind Kind     `json:"kind"`
	Argv []Word   `json:"argv,omitempty"` // Exec: Argv[0] is the program
	Dirs []string `json:"dirs,omitempty"` // Exec: possible working directories, absolute; empty: unknown

	// Allow rules match only Canonical; ask and deny rules match both.
	Path      string `json:"path,omitempty"`      // absolute and lexically clean, as requested
	Canonical string `json:"canonical,omitempty"` // with every symbolic link resolved
	Unknown   bool   `json:"unknown,omitempty"`   // the path is known only at run time; Net: it is one of a file, most likely
	Tree      bool   `json:"tree,omitempty"`      // the path and everything below it
	// Part narrows Tree: PartNames, PartAttributes, programs.PartSome or PartBrought, or an ending such as ".go"; "": all.
	Part string `json:"part,omitempty"`

	Host   string `json:"host,omitempty"`   // Net; empty = unknown
	Port   int    `json:"port,omitempty"`   // Net; 0 = the scheme's
	Scheme string `json:"scheme,omitempty"` // empty = unknown
	Method string `json:"method,omitempty"` // HTTP; empty = unknown
	Name   string `json:"name,omitempty"`   // Env: the variable

	// Possible marks a suspected effect: ask and deny rules apply to it, but it needs no allow rule.
	Possible bool `json:"possible,omitempty"`

	Why    string `json:"why,omitempty"`    // Opaque: what is unknown
	Code   bool   `json:"code,omitempty"`   // Opaque: code passed to a named program; Exec: a written text that one may run
	Kept   bool   `json:"kept,omitempty"`   // Exec: what it removes or overwrites can be restored
	Absent bool   `json:"absent,omitempty"` // Exec: the program does not exist
	Follow bool   `json:"follow,omitempty"` // Exec: the commands that it runs are separate effects
	Source string `json:"source,omitempty"` // part of the call that has the effect
}

// String formats the effect in one line.
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

// Decision is the strictest verdict on the effects of a call.
type Decision struct {
	Action Action `json:"action"`
	Rule   string `json:"rule"`   // such as "push", "defaults.bash", "builtin:secrets"
	Source string `json:"source"` // "file:line", or "built-in"
	Reason string `json:"reason"` // for people and models
	Effect Effect `json:"effect"` // the deciding effect

	// Always: earlier approvals do not count.
	Always bool `json:"always,omitempty"`
	// Profile is the sandbox required by rules, or "" for the configured one. It never weakens the configured one.
	Profile string `json:"profile,omitempty"`
}
