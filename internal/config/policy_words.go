package config

import (
	"fmt"
	"strings"

	"github.com/toold/toold/policy"
)

// The words of a policy file that have a meaning.

type action policy.Action

// UnmarshalText reads allow, ask or deny.
func (a *action) UnmarshalText(text []byte) error {
	v, err := policy.ParseAction(string(text))
	*a = action(v)
	return err
}

// value is the action; nothing denies.
func (a *action) value() policy.Action {
	if a == nil {
		return policy.Deny
	}
	return policy.Action(*a)
}

type operation policy.Kind

// UnmarshalText reads read or write.
func (o *operation) UnmarshalText(text []byte) error {
	switch string(text) {
	case "read":
		*o = operation(policy.Read)
	case "write":
		*o = operation(policy.Write)
	default:
		return fmt.Errorf("unknown operation %q: expected read or write", text)
	}
	return nil
}

// version is the version of the schema.
type version int

// UnmarshalText accepts the one version there is.
func (v *version) UnmarshalText(text []byte) error {
	if string(text) != "1" {
		return fmt.Errorf("unknown version %q: this program reads version 1", text)
	}
	*v = 1
	return nil
}

// mode is true when nobody can be asked.
type mode bool

// UnmarshalText reads interactive or headless.
func (m *mode) UnmarshalText(text []byte) error {
	switch string(text) {
	case "interactive", "headless":
		*m = string(text) == "headless"
		return nil
	}
	return fmt.Errorf("unknown mode %q: expected interactive or headless", text)
}

// pathCase is true when paths that differ only in case are one path.
type pathCase bool

// UnmarshalText reads sensitive or insensitive.
func (p *pathCase) UnmarshalText(text []byte) error {
	switch string(text) {
	case "sensitive", "insensitive":
		*p = string(text) == "insensitive"
		return nil
	}
	return fmt.Errorf("unknown path_case %q: expected sensitive or insensitive", text)
}

// linesOf splits a file for error messages.
func linesOf(src []byte) []string { return strings.Split(string(src), "\n") }
