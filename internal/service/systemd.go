package service

import (
	"context"
	"fmt"
	"hash/fnv"
	"os"
	"os/exec"
	"strings"
	"time"
)

// managed reports whether systemd manages services of the user.
func managed(ctx context.Context) bool {
	if _, err := exec.LookPath("systemd-run"); err != nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	return exec.CommandContext(ctx, "systemctl", "--user", "show-environment").Run() == nil
}

// UnitName is the name of the unit that serves a state directory.
func UnitName(stateDir string) string {
	h := fnv.New32a()
	h.Write([]byte(stateDir))
	return fmt.Sprintf("toold-%08x", h.Sum32())
}

// unit starts the daemon as a transient unit with the environment of this program, so that
// commands find the programs that they find in the user's shell.
func (o Options) unit(ctx context.Context, log string) (process, error) {
	name := UnitName(o.StateDir)
	args := []string{
		"--user", "--quiet", "--collect", "--unit=" + name, "--description=toold, which runs the tool calls of agents",
		"--working-directory=" + o.Dir, "--property=StandardOutput=append:" + log, "--property=StandardError=append:" + log,
	}
	for _, entry := range os.Environ() {
		if variable, _, ok := strings.Cut(entry, "="); ok && printable(entry) && variable != "" {
			args = append(args, "--setenv="+entry)
		}
	}
	args = append(append(args, "--"), o.Command...)
	if out, err := exec.CommandContext(ctx, "systemd-run", args...).CombinedOutput(); err != nil {
		return process{}, fmt.Errorf("cannot start the unit %s: %w: %s\nstart the daemon in a terminal instead: toold serve", name, err, strings.TrimSpace(string(out)))
	}
	looked := time.Now()
	return process{unit: name, ended: func() (string, bool) {
		if time.Since(looked) < 500*time.Millisecond {
			return "", false
		}
		looked = time.Now()
		state, _ := exec.CommandContext(ctx, "systemctl", "--user", "is-active", name).Output() // it fails unless active
		is := strings.TrimSpace(string(state))
		return "the unit " + name + " is " + is, is == "inactive" || is == "failed"
	}}, nil
}

func printable(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f })
}
