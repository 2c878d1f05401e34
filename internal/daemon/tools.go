package daemon

import (
	"context"
	"fmt"
	"os"
	"slices"

	"github.com/toold/toold/executor"
	"github.com/toold/toold/internal/config"
	"github.com/toold/toold/internal/workspaces"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/sandbox/egress"
	"github.com/toold/toold/sandbox/launch"
	"github.com/toold/toold/sandbox/masks"
	"github.com/toold/toold/sandbox/protect"
	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/bash"
	"github.com/toold/toold/tools/calls"
	"github.com/toold/toold/tools/elsewhere"
	"github.com/toold/toold/tools/files"
)

// Tools returns the tools of a configuration for judging calls, not for running them.
func Tools(cfg config.Config) (*tools.Registry, error) {
	return newRegistry(cfg, shared{}, &workspace{})
}

// newRegistry returns the tools of a workspace. For judging, zero values suffice.
func newRegistry(cfg config.Config, all shared, w *workspace) (*tools.Registry, error) {
	opt := files.Options{Workspace: cfg.Workspace, Home: os.Getenv("HOME"), Profile: cfg.Sandbox, Masks: w.masks, Protect: w.watcher, Files: &w.files}
	var registry *tools.Registry
	judge := elsewhere.New(func() *tools.Registry { return registry })
	list := append(files.New(opt), files.NewLook(opt), judge)
	registry, err := tools.NewRegistry(append(append(list, calls.New()...), bash.New(bash.Options{
		Workspace: cfg.Workspace, Profile: cfg.Sandbox, Terminal: terminalMode(cfg.Terminal),
		Env:            commandEnv(cfg),
		DefaultTimeout: cfg.Limits.Timeout, MaxTimeout: cfg.Limits.MaxTimeout, Grace: cfg.Limits.Grace, Pool: all.shells, Masks: w.masks, Protect: w.watcher,
		MaxBackground: cfg.Limits.BackgroundTimeout, ReturnBytes: cfg.Limits.ReturnBytes, Background: cfg.Limits.BackgroundCalls > 0, Egress: egressOptions(cfg.Egress, all.connections),
	}))...)
	return registry, err
}

// commandEnv returns the environment of commands. PATH excludes all other workspaces.
func commandEnv(cfg config.Config) []string {
	others, _ := workspaces.In(cfg.StateDir).List() // if the list is unreadable, no workspace is served
	return executor.BaseEnv(executor.EnvOptions{
		From: os.Environ(), Pass: cfg.Env.Pass, Set: cfg.Env.Set, Default: cfg.Sandbox.Caches.Env(),
		Workspace: cfg.Workspace, Others: workspaces.Paths(others),
	})
}

func terminalMode(name string) executor.Terminal {
	terminals := []executor.Terminal{executor.Split, executor.Single, executor.Off}
	return terminals[max(0, slices.IndexFunc(terminals, func(t executor.Terminal) bool { return t.String() == name }))]
}

// Command returns a command as calls run it, without its script.
func Command(cfg config.Config) executor.Command {
	return executor.Command{Dir: cfg.Workspace, Env: commandEnv(cfg), Terminal: terminalMode(cfg.Terminal), Sandbox: cfg.Sandbox}
}

// Confine returns the profile completed for this machine, or an error if calls cannot be confined.
func Confine(ctx context.Context, cfg config.Config) (sandbox.Profile, sandbox.Report, error) {
	profile, report, err := launch.Choose(ctx, cfg.Sandbox, cfg.Lowest)
	if err != nil {
		return profile, report, fmt.Errorf("%w\n`toold doctor` says what this machine lacks and how to get it", err)
	}
	return profile, report, nil
}

func egressOptions(e config.Egress, slots *egress.Slots) egress.Options {
	return egress.Options{Private: e.Private, OtherNames: e.OtherNames, Slots: slots}
}

// allowedHost returns a function that reports whether a host needs no approval.
func allowedHost(e config.Egress) func(string, uint16) bool {
	return func(host string, port uint16) bool {
		return slices.ContainsFunc(e.Allow, func(p egress.Pattern) bool { return p.Matches(host, port) })
	}
}

// Protection returns the options for watching protected names.
func Protection(cfg config.Config) protect.Options {
	return protect.Options{
		Roots: append([]string{cfg.Workspace}, cfg.Sandbox.Write...), Names: cfg.Protect,
		Quarantine: cfg.QuarantineDir(), Report: cfg.ProtectReport,
	}
}

func newTracker(cfg config.Config, p *policy.Policy) (*masks.Tracker, *protect.Watcher, error) {
	o := Protection(cfg)
	if !cfg.Protected() {
		o.Names = nil // what calls cannot write needs no protection
	}
	return masks.New(o, p)
}
