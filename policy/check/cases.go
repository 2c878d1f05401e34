package check

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/toold/toold/policy"
)

// Case is a call and its expected decision: one line of a file. Either Expect or MustNot is set.
type Case struct {
	ID        string          `json:"id"`
	Policy    string          `json:"policy"` // relative to the directory of the cases
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
	Command   string          `json:"command"` // a bash command, instead of tool and arguments
	Dir       string          `json:"cwd"`
	Expect    string          `json:"expect"`
	MustNot   []string        `json:"must_not"`

	Kind     string `json:"kind"`
	Category string `json:"category"`
	Why      string `json:"why"`
	Source   string `json:"source"`
	Verified string `json:"verified"`
}

// ReadCase reads one line. It rejects unknown keys, because a misspelled key would make a case expect nothing.
func ReadCase(line []byte) (Case, error) {
	var c Case
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&c); err != nil {
		return c, err
	}
	if _, err := dec.Token(); err != io.EOF {
		return c, errors.New("one case a line")
	}
	if c.Expect == "" && len(c.MustNot) == 0 {
		return c, errors.New("neither expect nor must_not says what the decision should be")
	}
	for _, word := range append(c.MustNot, c.Expect) {
		if _, err := policy.ParseAction(word); err != nil && word != "" {
			return c, err
		}
	}
	if (c.Command == "") == (c.Tool == "") {
		return c, errors.New("a case has either a command, or a tool with its arguments")
	}
	return c, c.complete()
}

func (c *Case) complete() error {
	arguments := make(map[string]any)
	if c.Command != "" {
		c.Tool, arguments["command"] = "bash", c.Command
	} else if err := json.Unmarshal(c.Arguments, &arguments); err != nil {
		return fmt.Errorf("arguments: %v", err)
	} else if arguments == nil {
		return errors.New("arguments: expected an object")
	}
	if c.Dir != "" {
		arguments["cwd"] = c.Dir
	}
	var err error
	c.Arguments, err = json.Marshal(arguments)
	return err
}

// Failure returns how the decision differs from the expected one, or "". A call with invalid arguments is denied.
func (c *Case) Failure(j *Judge) string {
	d := policy.Decision{Action: policy.Deny, Reason: "the call is refused before the policy sees it"}
	effects, err := j.Effects(c.Tool, c.Arguments)
	if err == nil {
		d = j.Decide(effects)
	} else {
		d.Reason += ": " + err.Error()
	}
	got := d.Action.String()
	if (c.Expect == "" || c.Expect == got) && !slices.Contains(c.MustNot, got) {
		return ""
	}
	want := cmp.Or(c.Expect, "not "+strings.Join(c.MustNot, " or "))
	return fmt.Sprintf("got %s, want %s: %s [%s]", got, want, d.Reason, d.Rule)
}

// Examples tests each example in a policy file separately. The error is that of the file without examples.
func Examples(o policy.Options, f policy.File) (passed int, failures []string, err error) {
	bare := f
	bare.Commands = slices.Clone(f.Commands)
	for i, rule := range bare.Commands {
		passed += len(rule.Match) + len(rule.NotMatch)
		bare.Commands[i].Match, bare.Commands[i].NotMatch = nil, nil
	}
	if _, err := policy.Compile(o, bare); err != nil {
		return 0, nil, err
	}
	var all interface{ Unwrap() []error }
	if _, err := policy.Compile(o, f); errors.As(err, &all) {
		for _, err := range all.Unwrap() {
			failures = append(failures, err.Error())
		}
	}
	return passed - len(failures), failures, nil
}
