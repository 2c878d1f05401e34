package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/toold/toold/internal/config"
	"github.com/toold/toold/internal/dispatch"
	"github.com/toold/toold/internal/workspaces"
	"github.com/toold/toold/message"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/sandbox/masks"
	"github.com/toold/toold/sandbox/protect"
	"github.com/toold/toold/tools"
)

// unit is a workspace that the daemon has opened: all that its calls share and that no
// other workspace's calls do.
type unit struct {
	*dispatch.Workspace
	cfg      config.Config
	held     sandbox.Report
	registry *tools.Registry
	caches   *sandbox.Caches
	masks    *masks.Tracker
	watcher  *protect.Watcher // of masks
	files    sandbox.Files
	warnings []string // of its policy
}

// served is the daemon's set of workspaces, as calls use it.
type served struct{ *workspaces.Set[*unit] }

// Use returns the workspace that contains dir.
func (s served) Use(ctx context.Context, dir string) (*dispatch.Workspace, func(), error) {
	u, release, err := s.Set.Use(ctx, dir)
	if err != nil {
		return nil, nil, err
	}
	return u.Workspace, release, nil
}

// openUnit opens a workspace.
func (d *daemon) openUnit(ctx context.Context, root string) (*unit, error) {
	cfg := d.cfg
	if root != cfg.Workspace {
		var err error
		if cfg, err = d.elsewhere(root); err != nil {
			return nil, &exitError{exitConfig, err}
		}
		for _, w := range cfg.Warnings {
			d.log.Warn("a workspace's configuration", zap.String("workspace", root), zap.String("warning", w))
		}
	}
	u := &unit{cfg: cfg}
	if err := u.open(ctx, d); err != nil {
		u.close()
		return nil, err
	}
	d.policies.follow()
	return u, nil
}

// open makes what the calls of the workspace share. On error close closes what was opened.
func (u *unit) open(ctx context.Context, d *daemon) error {
	p, err := loadPolicy(u.cfg)
	if err != nil {
		return err
	}
	if err = u.openCaches(ctx); err != nil {
		return err
	}
	u.cfg.Sandbox.Groups = d.groups
	if u.cfg.Sandbox, u.held, err = confinement(ctx, u.cfg); err != nil {
		return err
	}
	if err = withoutNamespace(u.cfg.Sandbox, u.caches); err != nil {
		return &exitError{exitFailed, err}
	}
	if u.masks, u.watcher, err = watchOver(u.cfg, p); err != nil {
		return &exitError{exitFailed, err}
	}
	if u.registry, err = newRegistry(u.cfg, d.shared, u); err != nil {
		return err
	}
	u.warnings = p.Warnings()
	u.Workspace = dispatch.NewWorkspace(dispatch.WorkspaceOptions{
		Root: u.cfg.Workspace, Registry: u.registry, Policy: p,
		Listed: listed(u.cfg.Egress), Profile: u.cfg.Sandbox, Widen: u.cfg.Widen, Remember: u.remember(d),
	})
	return nil
}

// remember returns what writes rules into the user's policy file; nil when there is none.
func (u *unit) remember(d *daemon) func([]policy.Change, string, string) error {
	if u.cfg.Policy == "" {
		return nil
	}
	return func(changes []policy.Change, person, call string) error {
		e := entry{At: time.Now(), Person: person, Call: call, Changes: changes}
		return d.book.add(u.cfg.Policy, e, func() error {
			_, err := d.policies.reload()
			return err
		})
	}
}

func (u *unit) close() {
	u.watcher.Close()
	u.files.Close()
	u.caches.Close()
}

// reload takes up the workspace's policy files as they are now. On an error the policy
// that held goes on holding.
func (u *unit) reload() error {
	p, err := loadPolicy(u.cfg)
	if err != nil {
		return fmt.Errorf("%w (workspace %s)", err, u.cfg.Workspace)
	}
	u.masks.Use(p) // before calls come under it, which would have to wait
	u.SetPolicy(p)
	u.warnings = p.Warnings()
	return nil
}

// reloadAll reloads every open workspace. What was prepared under the policies before is
// given up.
func (d *daemon) reloadAll() (warnings []string, err error) {
	err = d.workspaces.Each(func(_ string, u *unit) error {
		err := u.reload()
		warnings = append(warnings, u.warnings...)
		return err
	})
	d.shells.Flush()
	slices.Sort(warnings)
	return slices.Compact(warnings), err
}

// policyPlaces are the files whose change changes a policy of an open workspace.
func (d *daemon) policyPlaces() (places []string) {
	_ = d.workspaces.Each(func(_ string, u *unit) error {
		places = append(places, policyPlaces(u.cfg)...)
		return nil
	})
	return places
}

// limitCaches bounds the tool caches of every open workspace.
func (d *daemon) limitCaches(ctx context.Context) error {
	return d.workspaces.Each(func(_ string, u *unit) error { return u.caches.Limit(ctx, d.cfg.Limits.CachesTotal) })
}

// greet answers a client that says hello and wants to work in dir; "" stands for
// the daemon's own workspace.
func (d *daemon) greet(dir string) (message.HelloAck, error) {
	if dir != "" {
		canonical, err := sandbox.Resolve(dir)
		if err != nil {
			return message.HelloAck{}, err
		}
		dir = canonical
	}
	u, release, err := d.workspaces.Set.Use(context.Background(), dir)
	if err != nil {
		return message.HelloAck{}, err
	}
	defer release()
	roots, err := d.workspaces.Roots()
	return d.greeting(u, roots), err
}
