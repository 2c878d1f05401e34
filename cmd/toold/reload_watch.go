package main

import (
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"
	"go.uber.org/zap"

	"github.com/toold/toold/internal/config"
)

// settle is how long a policy file must have been left alone before it is read:
// editors write in several steps.
const settle = 100 * time.Millisecond

// hangupReloads tells what SIGHUP means: a closed terminal where there is one to
// close, else, as for every daemon, that the files are to be read again.
func hangupReloads() bool {
	if signal.Ignored(syscall.SIGHUP) { // nohup
		return true
	}
	tty, err := os.Open("/dev/tty")
	if err != nil {
		return true
	}
	tty.Close()
	return false
}

// policyPlaces are the files whose change changes the policy. The folder of the
// workspace's policy is one of them: it may come into being later.
func policyPlaces(cfg config.Config) []string {
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

// watch reloads when one of the files changes and at SIGHUP, until ctx ends;
// then it closes what it returns. Which files there are may change with them.
func (p *policies) watch(ctx context.Context, places func() []string) <-chan struct{} {
	done := make(chan struct{})
	hangup := make(chan os.Signal, 1)
	if hangupReloads() {
		signal.Notify(hangup, syscall.SIGHUP)
	}
	changes, err := fsnotify.NewWatcher()
	if err != nil {
		p.log.Warn("cannot watch the policy files; after a change: toold reload", zap.Error(err))
		changes = &fsnotify.Watcher{} // its channels never tell anything
	}
	files := places()
	p.followFiles(changes, files)
	// Ends with ctx.
	go func() {
		defer close(done)
		defer signal.Stop(hangup)
		if err == nil {
			defer changes.Close()
		}
		p.watchUntil(ctx, changes, places, files, hangup)
	}()
	return done
}

// followFiles watches the directories of files, not the files: editors and tools put new
// ones in their place.
func (p *policies) followFiles(changes *fsnotify.Watcher, files []string) {
	for _, file := range files {
		if _, err := os.Stat(filepath.Dir(file)); err != nil || changes.Events == nil {
			continue
		}
		if err := changes.Add(filepath.Dir(file)); err != nil {
			p.log.Warn("cannot watch the policy's folder; after a change: toold reload", zap.String("policy", file), zap.Error(err))
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
