package main

import (
	"fmt"
	"path/filepath"

	"github.com/toold/toold/internal/config"
	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/sandbox/protect"
)

// guarded reports whether calls may write something in which names are protected, be it
// that a person lets them.
func guarded(cfg config.Config) bool {
	return max(cfg.Sandbox.Mode, cfg.Widen.Mode) != sandbox.ReadOnly && len(cfg.Protect) > 0
}

func guardOptions(cfg config.Config) protect.Options {
	return protect.Options{
		Roots: append([]string{cfg.Workspace}, cfg.Sandbox.Write...), Names: cfg.Protect,
		Quarantine: quarantineDir(cfg), Report: cfg.ProtectReport,
	}
}

// quarantine is the directory with copies of what was removed.
func quarantineDir(cfg config.Config) string { return filepath.Join(cfg.StateDir, "quarantine") }

// watchFinding tells whether the workspace can be watched for protected names.
func watchFinding(cfg config.Config) finding {
	f := finding{Name: "protected names", OK: true}
	if !guarded(cfg) {
		f.Is = "not watched for: sandbox.protect is empty, or calls can write nothing"
		return f
	}
	folders, why, unseen := protect.Survey(guardOptions(cfg))
	f.Is, f.OK = fmt.Sprintf("%d directories to watch", folders), !unseen
	if why != "" {
		f.Is += "; " + why
		f.Mend = fmt.Sprintf("sudo sysctl -w fs.inotify.max_user_watches=%d, or work in a smaller directory", 3*folders)
	}
	return f
}
