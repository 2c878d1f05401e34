//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/toold/toold/conformance/suite"
)

// srt is Anthropic's sandbox runtime, a program for each command, with the files of the
// example in its README.
type srt struct {
	program string
	at      suite.Workspace
}

func (s srt) Version(ctx context.Context) (string, error) {
	if s.program == "" {
		return "", errors.New("TOOLD_SRT names no program (npm package @anthropic-ai/sandbox-runtime)")
	}
	for _, name := range []string{"bwrap", "socat", "rg"} {
		if _, err := exec.LookPath(name); err != nil {
			return "", err
		}
	}
	return version(ctx, s.program, "--version")
}

func (s srt) Files() []string { return hiddenDirs(s.program, "node", "socat", "rg") }

func (s srt) Open(_ context.Context, at suite.Workspace) (suite.Session, error) {
	write := []string{at.Dir, "/tmp"}
	if at.Profile == "read-only" {
		write = []string{}
	}
	settings, err := json.Marshal(map[string]any{
		"network":    map[string]any{"allowedDomains": []string{}, "deniedDomains": []string{}},
		"filesystem": map[string]any{"denyRead": []string{"~/.ssh"}, "allowRead": []string{}, "allowWrite": write, "denyWrite": []string{".env"}},
	})
	if err != nil {
		return nil, err
	}
	s.at = at
	// Commands have TMPDIR=/tmp/claude, which Claude Code makes.
	return s, errors.Join(os.MkdirAll("/tmp/claude", 0o777), os.WriteFile(s.settings(), settings, 0o644))
}

func (s srt) settings() string { return filepath.Join(s.at.Scratch, "settings.json") }

func (s srt) Run(ctx context.Context, c suite.Command) (suite.Result, error) {
	if c.Terminal == "single" || c.Terminal == "split" {
		return suite.Result{}, suite.NotApplicable("srt makes no terminals")
	}
	if s.at.Profile == "full" {
		return suite.Result{}, suite.NotApplicable("srt confines every command")
	}
	env := append(os.Environ(), "HOME="+s.at.Home)
	r, err := runProgram(ctx, c, append(env, s.at.Env...), s.program, "--settings", s.settings(), "bash", "-c", c.Script)
	if r.Exit > 128 {
		r.Signal = suite.UnknownSignal
	}
	return r, err
}

func (s srt) Close() error { return nil }
