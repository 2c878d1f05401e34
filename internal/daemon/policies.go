package daemon

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fsnotify/fsnotify"
	"go.uber.org/zap"

	"github.com/toold/toold/internal/config"
	"github.com/toold/toold/internal/paths"
	"github.com/toold/toold/internal/server"
	"github.com/toold/toold/policy"
)

// LoadPolicy reads the policy of a configuration.
func LoadPolicy(cfg config.Config) (*policy.Policy, error) {
	p, err := config.LoadPolicy(cfg.Policy, PolicyOptions(cfg))
	if err != nil {
		return nil, &ConfigurationError{err}
	}
	return p, nil
}

// PolicyOptions returns the paths that a policy refers to.
func PolicyOptions(cfg config.Config) policy.Options {
	home, err := paths.Resolve(os.Getenv("HOME"))
	if err != nil {
		home = ""
	}
	return policy.Options{Workspace: cfg.Workspace, Home: home, Tmp: "/tmp", Protected: protected(cfg), Resolve: resolveOrKeep}
}

// protected returns the daemon's own files, which no call may access.
func protected(cfg config.Config) []string {
	own := []string{cfg.StateDir, cfg.HeadDir()}
	for _, file := range []string{cfg.File, cfg.Policy, cfg.Socket, cfg.TLS.Key} {
		if file != "" {
			own = append(own, file)
		}
	}
	return own
}

// resolveOrKeep resolves the links of a path, or returns it unchanged if that fails.
func resolveOrKeep(path string) string {
	if canonical, err := paths.Resolve(path); err == nil {
		return canonical
	}
	return path
}

// policies reloads changed policies, and keeps the last valid one.
type policies struct {
	load  func() (warnings []string, err error) // reads and applies the files
	home  config.Config                         // of the workspace in which the daemon was started
	came  atomic.Bool                           // the user has had a policy file
	files *policyWatch
	log   *zap.Logger
	mu    sync.Mutex // serialises reloads, so that the newest file counts; guards last
	last  server.Reloaded
}

// latest returns a configuration that names the policy file created since it was read. If that file is then removed,
// there is no policy: the built-in one does not silently replace it.
func (p *policies) latest(cfg config.Config) config.Config {
	if cfg.PolicyPlace == "" {
		return cfg
	}
	if _, err := os.Stat(cfg.PolicyPlace); !errors.Is(err, fs.ErrNotExist) {
		p.came.Store(true)
	}
	if p.came.Load() {
		cfg.Policy = cfg.PolicyPlace
	}
	return cfg
}

func (p *policies) state() server.Reloaded {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last
}

// reload reloads the policy. After an error, the last valid policy remains in force.
func (p *policies) reload() (server.Reloaded, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	warnings, err := p.load()
	name := p.latest(p.home).PolicyName()
	if err != nil {
		p.log.Error("the policy cannot be used; the last good one stays in force", zap.String("policy", name), zap.Error(err))
		p.last.Error = err.Error()
		return server.Reloaded{Policy: name}, err
	}
	p.last = server.Reloaded{Policy: name, Warnings: warnings}
	p.log.Info("policy loaded", zap.String("policy", name), zap.Strings("warnings", warnings))
	return p.last, nil
}

// settleTime is how long a file must be unchanged, since editors write in several steps. After longestSettle it is read
// anyway, since calls can cause events without end.
const (
	settleTime    = 100 * time.Millisecond
	longestSettle = 2 * time.Second
)

// policyFilesOf returns the files of a workspace's policy, and the paths where files may appear.
func policyFilesOf(cfg config.Config) []string {
	own := filepath.Join(cfg.Workspace, config.WorkspacePolicy)
	places := []string{own, filepath.Dir(own), config.AdministratorPolicy}
	if cfg.PolicyPlace != "" {
		places = append(places, cfg.PolicyPlace, filepath.Dir(cfg.PolicyPlace))
	}
	for _, file := range config.PolicyFiles(cfg.Policy) {
		places = append(places, file)
		if target, err := filepath.EvalSymlinks(file); err == nil && target != file {
			places = append(places, target)
		}
	}
	return places
}

// watch reloads when a file changes or hangup receives a signal, until ctx ends.
func (p *policies) watch(ctx context.Context, hangup <-chan os.Signal, listFiles func() []string) {
	var quiet <-chan time.Time
	var first time.Time
	settle := func() {
		if quiet == nil {
			first = time.Now()
		}
		if time.Since(first) < longestSettle {
			quiet = time.After(settleTime)
		}
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-hangup:
			quiet = time.After(0)
		case e := <-p.files.changes.Events:
			if p.files.has(e.Name) && e.Op != fsnotify.Chmod {
				settle()
			}
		case err := <-p.files.changes.Errors:
			p.log.Warn("watching the policy files failed; what was missed is read now", zap.Error(err))
			settle()
		case <-quiet:
			quiet = nil
			p.files.add(listFiles()) // a directory may be new
			p.reload()
		}
	}
}

// policyWatch notifies of changes of policy files. Files are added before they are read, so that no change is missed.
type policyWatch struct {
	changes *fsnotify.Watcher
	log     *zap.Logger

	mu    sync.Mutex
	files map[string]bool
}

// newPolicyWatch returns a watch that, unless it is on, has no events.
func newPolicyWatch(on bool, log *zap.Logger) *policyWatch {
	w := &policyWatch{changes: &fsnotify.Watcher{}, log: log, files: map[string]bool{}}
	if !on {
		return w
	}
	changes, err := fsnotify.NewWatcher()
	if err != nil {
		log.Warn("cannot watch the policy files; after a change: toold reload", zap.Error(err))
		return w
	}
	w.changes = changes
	return w
}

// add watches the directories of files, since editors replace files.
func (w *policyWatch) add(files []string) {
	if w.changes.Events == nil {
		return
	}
	for _, file := range files {
		w.mu.Lock()
		w.files[file] = true
		w.mu.Unlock()
		if _, err := os.Stat(filepath.Dir(file)); err != nil {
			continue
		}
		if err := w.changes.Add(filepath.Dir(file)); err != nil {
			w.log.Warn("cannot watch the policy's directory; after a change: toold reload", zap.String("policy", file), zap.Error(err))
		}
	}
}

func (w *policyWatch) has(file string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.files[file]
}

func (w *policyWatch) close() {
	if w.changes.Events != nil {
		w.changes.Close()
	}
}
