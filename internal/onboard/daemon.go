package onboard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/toold/toold/executor"
	"github.com/toold/toold/internal/config"
	"github.com/toold/toold/internal/console"
	"github.com/toold/toold/internal/service"
	"github.com/toold/toold/internal/statedir"
	"github.com/toold/toold/interop/connect"
)

// Stop ends the daemon of a state directory. ok is false if there was none.
func Stop(ctx context.Context, stateDir string) (d statedir.Daemon, ok bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, downWithin)
	defer cancel()
	if d, ok, err = service.Stop(ctx, stateDir); err == nil {
		err = Keep(stateDir)
	}
	if err != nil {
		err = console.Exit(console.ExitFailed, err)
	}
	return d, ok, err
}

// lentFile exists while a daemon runs only for connected agents.
func lentFile(stateDir string) string { return filepath.Join(stateDir, "connect", "daemon") }

// lendDaemon marks the daemon, which was just started for agents, so that releaseDaemon ends it.
func lendDaemon(stateDir string) error {
	file := lentFile(stateDir)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	return os.WriteFile(file, nil, 0o600)
}

// Keep lets the daemon continue when no agent is connected.
func Keep(stateDir string) error {
	if err := os.Remove(lentFile(stateDir)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// releaseDaemon ends a daemon that was started for agents if no agent is connected.
func (c *Agents) releaseDaemon(ctx context.Context) error {
	names, err := connect.Connected(c.Daemon.Config.StateDir)
	if err != nil || len(names) > 0 {
		return err
	}
	stateDir := c.Daemon.Config.StateDir
	if _, err := os.Stat(lentFile(stateDir)); err == nil {
		d, ok, err := statedir.Running(stateDir)
		if err != nil {
			return err
		}
		if !ok || d.Background {
			_, _, err = Stop(ctx, stateDir)
			return err
		}
		// The user has started another one since.
		if err := errors.Join(service.Disable(ctx, stateDir), Keep(stateDir)); err != nil {
			return err
		}
	}
	if _, err := c.Daemon.Endpoint(); err == nil && len(c.results) > 0 && !c.JSON {
		fmt.Fprintln(c.Err, "the daemon, which you started, still runs; end it with `toold down`")
	}
	return nil
}

const downWithin = 2 * time.Minute

// UnitEnv returns the environment of a unit: what commands get, and the locations of files. It contains no secrets.
func UnitEnv(cfg config.Config) (env []string) {
	own := append(slices.Collect(maps.Keys(config.Homes())), "TOOLD_*", "XDG_STATE_HOME", "TMPDIR")
	for _, entry := range os.Environ() {
		if name, _, _ := strings.Cut(entry, "="); executor.Passes(name, append(own, cfg.Env.Pass...)) {
			env = append(env, entry)
		}
	}
	return env
}

// Command returns the command that starts the daemon in the workspace of cfg with the flags of this program.
func Command(options config.Options, cfg config.Config) ([]string, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("cannot find this program: %w", err)
	}
	command := []string{program, "serve", "--workspace", cfg.Workspace, "--state-dir", cfg.StateDir}
	for _, flag := range []struct{ name, file string }{{"--config", options.Path}, {"--policy", options.Policy}} {
		if flag.file == "" {
			continue
		}
		path, err := filepath.Abs(flag.file)
		if err != nil {
			return nil, err
		}
		command = append(command, flag.name, path)
	}
	for _, flag := range [][2]string{{"--listen", options.Listen}, {"--log-level", options.LogLevel}} {
		if flag[1] != "" {
			command = append(command, flag[0], flag[1])
		}
	}
	return command, nil
}

// Flags returns the flags with which an agent starts toold for a configuration. Of the agent's environment, only HOME
// is certain.
func Flags(cfg config.Config) (flags []string) {
	home := func(name string) string { return map[string]string{"HOME": os.Getenv("HOME")}[name] }
	alone, err := config.Load(config.Options{For: config.ReachDaemon, Getenv: home})
	if err != nil || alone.StateDir != cfg.StateDir {
		flags = append(flags, "--state-dir", cfg.StateDir)
	}
	if alone.File != cfg.File && cfg.File != "" {
		flags = append(flags, "--config", cfg.File)
	}
	return flags
}

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
	switch {
	case len(c.results) == 0:
		fmt.Fprintln(c.Err, "nothing is connected")
	case !c.Undo && !c.JSON:
		fmt.Fprint(c.Err, "Agents now run only in registered projects: run `toold up` once in each.\nSee what they ask and answer with `toold watch`; take this back with `toold connect --undo`.\n")
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
	_, err := os.Lstat(u.Path)
	switch gone := errors.Is(err, fs.ErrNotExist); {
	case u.Restored && gone:
		fmt.Fprintf(c.Err, "  %s is gone: there was none before\n", u.Path)
	case u.Restored:
		fmt.Fprintf(c.Err, "  %s is what it was\n", u.Path)
	case u.Diff == "":
		why := cmp.Or(strings.TrimPrefix(strings.Join(u.Kept, ", "), "all of it: "), "nothing that connect wrote is in it any more")
		fmt.Fprintf(c.Err, "  %s is left as it is: %s\n", u.Path, why)
	default:
		fmt.Fprintf(c.Err, "  %s was changed since; only what connect wrote was taken out:\n", u.Path)
		_ = c.Show(u.Diff)
		if len(u.Kept) > 0 {
			fmt.Fprintf(c.Err, "  these were changed since, and stay: %s\n", strings.Join(u.Kept, ", "))
		}
	}
}
