package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// unitFile is the path of the daemon's unit, whether or not it exists. The user's systemd has a link to it.
func unitFile(stateDir string) string {
	h := fnv.New32a()
	h.Write([]byte(stateDir))
	return filepath.Join(stateDir, fmt.Sprintf("toold-%08x.service", h.Sum32()))
}

// managed reports whether systemd manages services of the user.
func managed(ctx context.Context) bool { return systemctl(ctx, "show-environment") == nil }

func systemctl(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, "systemctl", append([]string{"--user"}, args...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}

func (o Options) text(log string) string {
	var own strings.Builder
	fmt.Fprintf(&own, "WorkingDirectory=%s\n", specifiers(o.Dir))
	fmt.Fprintf(&own, "StandardOutput=append:%s\nStandardError=append:%[1]s\n", specifiers(log))
	for _, entry := range append(slices.Clone(o.Env), Background+"=1") {
		fmt.Fprintf(&own, "Environment=%s\n", quoted(entry))
	}
	command := quoted(o.Command[0])
	for _, arg := range o.Command[1:] {
		command += " " + strings.ReplaceAll(quoted(arg), "$", "$$")
	}
	return "# Written by `toold up`, removed by `toold down`.\n" + unit("toold, which runs the tool calls of agents", own.String(), command)
}

// unit returns a service. A command that runs out of memory must not end the daemon. A signal to the daemon must not
// end its commands, whose calls it answers first.
func unit(description, own, command string) string {
	return "[Unit]\nDescription=" + description + "\nStartLimitIntervalSec=60\nStartLimitBurst=5\n\n" +
		"[Service]\nType=exec\nRestart=on-failure\nRestartSec=2\nKillMode=mixed\nDelegate=yes\nOOMPolicy=continue\n" +
		own + "ExecStart=" + command + "\n\n[Install]\nWantedBy=default.target\n"
}

// Templates returns the units of a package, with instances by directory (systemd-escape --path). The socket starts
// the service when a client connects to address.
func Templates(program, address string) (service, socket string) {
	service = unit("toold, which runs the tool calls of agents in %f", "WorkingDirectory=%f\n", quoted(program)+" serve --listen "+address)
	socket = "[Unit]\nDescription=Starts toold in %f when an agent connects\n\n[Socket]\nListenStream=" + address + "\n\n[Install]\nWantedBy=sockets.target\n"
	return service, socket
}

func specifiers(s string) string { return strings.ReplaceAll(s, "%", "%%") }

func quoted(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`, "\r", `\r`).Replace(specifiers(s)) + `"`
}

// unfit returns why systemd would read another path than this one, which is written without quotes: a line break
// begins a setting, and a backslash at the end continues the line.
func unfit(path string) error {
	isControl := func(r rune) bool { return r < 0x20 || r == 0x7f }
	if strings.ContainsFunc(path, isControl) || strings.HasSuffix(path, `\`) || strings.TrimSpace(path) != path {
		return fmt.Errorf("cannot write a unit of systemd for the directory %q: rename it, so that its name has no control character and does not end in a blank or a backslash; or start the daemon in a terminal: toold serve", path)
	}
	return nil
}

func (o Options) enable(ctx context.Context, log string) (process, error) {
	if err := cmp.Or(unfit(o.Dir), unfit(o.StateDir)); err != nil {
		return process{}, err
	}
	file := unitFile(o.StateDir)
	name := filepath.Base(file)
	err := os.WriteFile(file, []byte(o.text(log)), 0o600)
	if err == nil {
		err = systemctl(ctx, "enable", "--now", file)
	}
	if err != nil {
		err = fmt.Errorf("cannot start the unit %s: %w\nstart the daemon in a terminal instead: toold serve", name, err)
		return process{}, errors.Join(err, Disable(context.WithoutCancel(ctx), o.StateDir))
	}
	var looked time.Time
	return process{unit: name, ended: func() (string, bool) {
		if time.Since(looked) < 500*time.Millisecond {
			return "", false
		}
		looked = time.Now()
		state, _ := exec.CommandContext(ctx, "systemctl", "--user", "is-active", name).Output() // it fails unless active
		is := strings.TrimSpace(string(state))
		// Activating again means that it has ended once.
		return "the unit " + name + " is " + is, slices.Contains([]string{"inactive", "failed", "activating"}, is)
	}}, nil
}

// Disable ends and removes the unit of a state directory, if there is one.
func Disable(ctx context.Context, stateDir string) error {
	file := unitFile(stateDir)
	if _, err := os.Stat(file); err != nil {
		return nil
	}
	name := filepath.Base(file)
	if err := systemctl(ctx, "disable", "--now", name); err != nil {
		return fmt.Errorf("cannot remove the unit %s: %w\nuntil you do, in a login of yours, it starts the daemon again: systemctl --user disable --now %[1]s", name, err)
	}
	_ = systemctl(ctx, "reset-failed", name) // it fails unless the unit did
	return os.Remove(file)
}
