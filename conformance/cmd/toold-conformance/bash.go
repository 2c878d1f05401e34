//go:build linux

package main

import (
	"context"
	"os"

	"github.com/toold/toold/conformance/suite"
)

// bash runs bash with pipes and confines nothing. It is the baseline: what passes here needs no effort.
type bash struct {
	at suite.Workspace
}

func (bash) Version(ctx context.Context) (string, error) {
	return version(ctx, "bash", "-c", "echo $BASH_VERSION")
}

func (bash) Files() []string { return nil }

func (bash) Open(_ context.Context, at suite.Workspace) (suite.Session, error) { return bash{at}, nil }

func (b bash) Run(ctx context.Context, c suite.Command) (suite.Result, error) {
	if c.Terminal == "single" || c.Terminal == "split" {
		return suite.Result{}, suite.NotApplicable("os/exec has no terminals")
	}
	env := append(os.Environ(), "HOME="+b.at.Home)
	return runProgram(ctx, c, append(env, b.at.Env...), "bash", "-c", c.Script)
}

func (bash) Close() error { return nil }
