package daemon

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/fsnotify/fsnotify"
	"go.uber.org/zap"

	"github.com/toold/toold/internal/config"
)

// settle is how long a file must be unchanged: editors write in several steps.
const settle = 100 * time.Millisecond

// policyFilesOf returns the files of a workspace's policy, and the directory of its own, which may come later.
func policyFilesOf(cfg config.Config) []string {
	own := filepath.Join(cfg.Workspace, config.WorkspacePolicy)
	places := []string{own, filepath.Dir(own), config.AdministratorPolicy}
	for _, file := range config.PolicyFiles(cfg.Policy) {
		places = append(places, file)
		if target, err := filepath.EvalSymlinks(file); err == nil && target != file {
			places = append(places, target)
		}
	}
	return places
}

// watch reloads when a file changes or hangup receives a signal, until ctx ends.
func (p *policies) watch(ctx context.Context, hangup <-chan os.Signal, places func() []string) {
	changes, err := fsnotify.NewWatcher()
	if err != nil {
		p.log.Warn("cannot watch the policy files; after a change: toold reload", zap.Error(err))
		changes = &fsnotify.Watcher{} // its channels are nil
	} else {
		defer changes.Close()
	}
	files := places()
	p.followFiles(changes, files)
	p.watchUntil(ctx, changes, places, files, hangup)
}

// followFiles watches directories, since editors replace files.
func (p *policies) followFiles(changes *fsnotify.Watcher, files []string) {
	for _, file := range files {
		if _, err := os.Stat(filepath.Dir(file)); err != nil || changes.Events == nil {
			continue
		}
		if err := changes.Add(filepath.Dir(file)); err != nil {
			p.log.Warn("cannot watch the policy's directory; after a change: toold reload", zap.String("policy", file), zap.Error(err))
		}
	}
}

func (p *policies) watchUntil(ctx context.Context, changes *fsnotify.Watcher, places func() []string, files []string, hangup <-chan os.Signal) {
	quiet := time.NewTimer(settle)
	quiet.Stop()
	defer quiet.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-hangup:
			quiet.Reset(0)
		case <-p.more:
			quiet.Reset(settle)
		case e := <-changes.Events:
			if slices.Contains(files, e.Name) && e.Op != fsnotify.Chmod {
				quiet.Reset(settle)
			}
		case err := <-changes.Errors:
			p.log.Warn("watching the policy files failed; what was missed is read now", zap.Error(err))
			quiet.Reset(settle)
		case <-quiet.C:
			files = places()
			p.followFiles(changes, files) // a directory may be new
			p.reload()
		}
	}
}
