//go:build linux

package conformance

import (
	"context"
	"fmt"
	"path/filepath"
)

// A Case is one of the suites wire and policy, which are about toold's protocol and its decisions.
type Case struct {
	ID            string
	NotApplicable string // why it is not for this version, "" if it is

	play func(ctx context.Context, base string) (reasons, late []string)
}

// Play plays the case in an empty directory. It returns why it failed, and what was only late.
func (c Case) Play(ctx context.Context, base string) (reasons, late []string) {
	return c.play(ctx, base)
}

// Wire reads files of cases about the protocol, played against a program that is started like
// "toold serve".
func Wire(program string, files ...string) (list []Case, err error) {
	lines, err := readCases(files...)
	for _, l := range lines {
		list = append(list, Case{l.id, notApplicable(l.c), func(ctx context.Context, base string) (reasons, late []string) {
			if why := l.unreadable(); why != "" {
				return []string{why}, nil
			}
			return play(ctx, program, base, l.c, func(string) {})
		}})
	}
	return list, err
}

// unreadable reports why a case cannot be played, "" if it can.
func (l caseLine) unreadable() string {
	switch {
	case l.err != nil:
		return fmt.Sprintf("%s: cannot read the case: %v", l.place, l.err)
	case !isDialect(l.c.Dialect):
		return fmt.Sprintf("%s: unknown dialect %q", l.place, l.c.Dialect)
	}
	return ""
}

// Policy reads policy.jsonl, policy-fixture.json and policies/ of a directory. The caller plays the cases one after the
// other, and calls end to stop the daemons that they start below base.
func Policy(ctx context.Context, program, base, dir string) (list []Case, end func() error, err error) {
	c, err := newPolicyRunner(ctx, program, base, filepath.Join(dir, "policy-fixture.json"), filepath.Join(dir, "policies"))
	if err != nil {
		return nil, nil, err
	}
	lines, err := readPolicyCases(c.fixtureDirs, filepath.Join(dir, "policy.jsonl"))
	for _, l := range lines {
		list = append(list, Case{l.c.ID, "", func(ctx context.Context, _ string) (reasons, late []string) {
			if _, why := c.run(ctx, l); why != "" {
				reasons = []string{why}
			}
			return reasons, nil
		}})
	}
	return list, c.close, err
}
