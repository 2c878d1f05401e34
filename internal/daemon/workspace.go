package daemon

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/toold/toold/internal/config"
	"github.com/toold/toold/internal/dispatch"
	"github.com/toold/toold/internal/paths"
	"github.com/toold/toold/internal/workspaces"
	"github.com/toold/toold/message"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/sandbox/caches"
	"github.com/toold/toold/sandbox/cgroup"
	"github.com/toold/toold/sandbox/fileworker"
	"github.com/toold/toold/sandbox/masks"
	"github.com/toold/toold/sandbox/protect"
	"github.com/toold/toold/tools"
)

type workspace struct {
	*dispatch.Workspace
	cfg         config.Config
	confinement sandbox.Report
	registry    *tools.Registry
	caches      *caches.Set
	masks       *masks.Tracker
	watcher     *protect.Watcher // of masks
	files       fileworker.Pool
	warnings    []string // of its policy
}

type workspaceSet struct{ *workspaces.Set[*workspace] }

func (s workspaceSet) Use(ctx context.Context, dir string) (*dispatch.Workspace, func(), error) {
	w, release, err := s.Set.Use(ctx, dir)
	if err != nil {
		return nil, nil, err
	}
	return w.Workspace, release, nil
}

func (d *Daemon) openWorkspace(ctx context.Context, root string) (*workspace, error) {
	cfg := d.Config
	if root != cfg.Workspace {
		var err error
		if cfg, err = d.Elsewhere(root); err != nil {
			return nil, &ConfigurationError{err}
		}
		for _, warning := range cfg.Warnings {
			d.Log.Warn("a workspace's configuration", zap.String("workspace", root), zap.String("warning", warning))
		}
	}
	w := &workspace{cfg: cfg}
	w.files.Report(d.reportFailure)
	if err := w.open(ctx, d); err != nil {
		w.close()
		return nil, err
	}
	return w, nil
}

// open initialises what calls share. After an error, the caller closes it.
func (w *workspace) open(ctx context.Context, d *Daemon) error {
	cfg, confined := d.policies.latest(w.cfg), make(chan error, 1)
	// Ends when the sandbox has been tried, which takes about as long as compiling the policy.
	go func() { confined <- w.confine(ctx, d.groups) }()
	d.policies.files.add(policyFilesOf(cfg))
	p, err := LoadPolicy(cfg)
	if err = cmp.Or(err, <-confined); err != nil {
		return err
	}
	if w.masks, w.watcher, err = newTracker(w.cfg, p); err != nil {
		return err
	}
	if w.registry, err = newRegistry(w.cfg, d.shared, w); err != nil {
		return err
	}
	w.warnings = p.Warnings()
	w.Workspace = dispatch.NewWorkspace(dispatch.WorkspaceOptions{
		Root: w.cfg.Workspace, Registry: w.registry, Policy: p,
		Listed: allowedHost(w.cfg.Egress), Profile: w.cfg.Sandbox, Escalation: w.cfg.Escalation, Remember: d.remember,
	})
	return nil
}

// confine opens the tool caches and completes the profile for this machine.
func (w *workspace) confine(ctx context.Context, groups *cgroup.Root) error {
	err := w.openCaches(ctx)
	if err != nil {
		return err
	}
	w.cfg.Sandbox.Groups = groups
	if w.cfg.Sandbox, w.confinement, err = Confine(ctx, w.cfg); err != nil {
		return err
	}
	return CachesUnavailable(w.cfg.Sandbox, w.caches)
}

// remember returns a function that writes rules to the user's policy file, or nil if there is no such file.
func (d *Daemon) remember() func([]policy.Change, string, string) error {
	file := d.policies.latest(d.Config).Policy
	if file == "" {
		return nil
	}
	return func(changes []policy.Change, person, call string) error {
		e := Entry{At: time.Now(), Person: person, Call: call, Changes: changes}
		return d.rulebook.add(file, e, func() error {
			_, err := d.policies.reload()
			return err
		})
	}
}

func (w *workspace) close() {
	w.watcher.Close()
	w.files.Close()
	w.caches.Close()
}

// reload reloads the policy files. After an error, the last valid policy remains in force.
func (w *workspace) reload(d *Daemon) error {
	cfg := d.policies.latest(w.cfg)
	var err error
	if cfg.Policy != w.cfg.Policy && d.Elsewhere != nil {
		_, err = d.Elsewhere(cfg.Workspace) // checks the location of the file
	}
	var p *policy.Policy
	if err == nil {
		p, err = LoadPolicy(cfg)
	}
	if err != nil {
		return fmt.Errorf("%w (workspace %s)", err, w.cfg.Workspace)
	}
	_ = w.masks.Use(context.Background(), p) // before calls wait for it
	w.SetPolicy(p)
	w.warnings = p.Warnings()
	return nil
}

// reloadAll reloads every open workspace, and discards warm shells.
func (d *Daemon) reloadAll() (warnings []string, err error) {
	err = d.workspaces.Each(func(_ string, w *workspace) error {
		err := w.reload(d)
		warnings = append(warnings, w.warnings...)
		return err
	})
	d.shells.Flush()
	slices.Sort(warnings)
	return slices.Compact(warnings), err
}

func (d *Daemon) policyFiles() (places []string) {
	_ = d.workspaces.Each(func(_ string, w *workspace) error {
		places = append(places, policyFilesOf(d.policies.latest(w.cfg))...)
		return nil
	})
	return places
}

func (d *Daemon) limitCaches(ctx context.Context, most int64) error {
	return d.workspaces.Each(func(_ string, w *workspace) error { return w.caches.Limit(ctx, most) })
}

// hello answers hello; dir "" is the daemon's own workspace. See server.Options.Greet.
func (d *Daemon) hello(dir string) (message.HelloAck, error) {
	if dir != "" {
		canonical, err := paths.Resolve(dir)
		if err != nil {
			return message.HelloAck{}, err
		}
		dir = canonical
	}
	w, release, err := d.workspaces.Set.Use(context.Background(), dir)
	if err != nil {
		return message.HelloAck{Workspace: dir}, err
	}
	defer release()
	roots, err := d.workspaces.Roots()
	return d.helloAck(w, roots), err
}
