package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/toold/toold/interop/connect"
)

func notes(a connect.Agent, s connect.Setup) []string {
	return append(slices.Clone(a.Notes), a.Warnings(s)...)
}

func (c *connecting) printNotes(list []string) {
	for _, n := range list {
		fmt.Fprintf(c.std.err, "  note: %s\n", n)
	}
}

func (c *connecting) planned(plans []connect.Plan) error {
	for _, p := range plans {
		s, err := c.setup(p.Agent.Name)
		if err != nil {
			return err
		}
		c.results = append(c.results, connected{Agent: p.Agent.Name, Found: p.Agent.Found(s), Status: "planned", Diff: p.Diff(), Notes: notes(p.Agent, s)})
	}
	return nil
}

func (c *connecting) report() error {
	var failed []string
	for i := range c.results {
		r := &c.results[i]
		if r.Failure != nil {
			r.Reason = r.Failure.Error()
			failed = append(failed, r.Agent)
		}
		if !c.json {
			c.printResult(*r)
		}
	}
	if c.json {
		if err := c.emit(append([]connected{}, c.results...)); err != nil {
			return err
		}
	}
	if len(failed) > 0 {
		return &exitError{exitFailed, fmt.Errorf("failed: %s", strings.Join(failed, ", "))}
	}
	if len(c.results) == 0 {
		fmt.Fprintln(c.std.err, "nothing is connected")
	}
	return nil
}

func (c *connecting) printResult(r connected) {
	switch r.Status {
	case "connected":
		fmt.Fprintf(c.std.err, "%s: connected (%s)\n", r.Agent, r.Proof)
	case "already":
		fmt.Fprintf(c.std.err, "%s: connected already; nothing was changed\n", r.Agent)
		c.printNotes(r.Notes)
	case "undone":
		fmt.Fprintf(c.std.err, "%s: undone, and its token is revoked\n", r.Agent)
		for _, u := range r.Undone {
			c.printUndone(u)
		}
	default:
		fmt.Fprintf(c.std.err, "%s: %s\n", r.Agent, r.Reason)
	}
}

func (c *connecting) printUndone(u connect.Undone) {
	if u.Restored {
		fmt.Fprintf(c.std.err, "  %s is what it was\n", u.Path)
		return
	}
	fmt.Fprintf(c.std.err, "  %s was changed since; only what connect wrote was taken out:\n", u.Path)
	_ = c.out(u.Diff)
	if len(u.Kept) > 0 {
		fmt.Fprintf(c.std.err, "  these were changed since, and stay: %s\n", strings.Join(u.Kept, ", "))
	}
}
