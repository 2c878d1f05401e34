package onboard

import (
	"fmt"
	"slices"
	"strings"

	"github.com/toold/toold/internal/console"
	"github.com/toold/toold/interop/connect"
)

func notes(a connect.Agent, s connect.Setup) []string {
	return append(slices.Clone(a.Notes), a.Warnings(s)...)
}

func (c *Agents) printNotes(list []string) {
	for _, n := range list {
		fmt.Fprintf(c.Err, "  note: %s\n", n)
	}
}

func (c *Agents) planned(plans []connect.Plan) error {
	for _, p := range plans {
		s, err := c.setup(p.Agent.Name)
		if err != nil {
			return err
		}
		c.results = append(c.results, connected{Agent: p.Agent.Name, Found: p.Agent.Found(s), Status: "planned", Diff: p.Diff(), Notes: notes(p.Agent, s)})
	}
	return nil
}

func (c *Agents) report() error {
	var failed []string
	for i := range c.results {
		r := &c.results[i]
		if r.Failure != nil {
			r.Reason = r.Failure.Error()
			failed = append(failed, r.Agent)
		}
		if !c.JSON {
			c.printResult(*r)
		}
	}
	if c.JSON {
		if err := c.Emit(append([]connected{}, c.results...)); err != nil {
			return err
		}
	}
	if len(failed) > 0 {
		return console.Exit(console.ExitFailed, fmt.Errorf("failed: %s", strings.Join(failed, ", ")))
	}
	if len(c.results) == 0 {
		fmt.Fprintln(c.Err, "nothing is connected")
	}
	return nil
}

func (c *Agents) printResult(r connected) {
	switch r.Status {
	case "connected":
		fmt.Fprintf(c.Err, "%s: connected (%s)\n", r.Agent, r.Proof)
	case "already":
		fmt.Fprintf(c.Err, "%s: connected already; nothing was changed\n", r.Agent)
		c.printNotes(r.Notes)
	case "undone":
		fmt.Fprintf(c.Err, "%s: undone, and its token is revoked\n", r.Agent)
		for _, u := range r.Undone {
			c.printUndone(u)
		}
	default:
		fmt.Fprintf(c.Err, "%s: %s\n", r.Agent, r.Reason)
	}
}

func (c *Agents) printUndone(u connect.Undone) {
	if u.Restored {
		fmt.Fprintf(c.Err, "  %s is what it was\n", u.Path)
		return
	}
	fmt.Fprintf(c.Err, "  %s was changed since; only what connect wrote was taken out:\n", u.Path)
	_ = c.Show(u.Diff)
	if len(u.Kept) > 0 {
		fmt.Fprintf(c.Err, "  these were changed since, and stay: %s\n", strings.Join(u.Kept, ", "))
	}
}
