package main

import (
	"fmt"

	"github.com/toold/toold/internal/config"
	"github.com/toold/toold/internal/daemon"
	"github.com/toold/toold/sandbox/protect"
)

func watchFinding(cfg config.Config) finding {
	f := finding{Name: "protected names", OK: true}
	if !daemon.Protected(cfg) {
		f.Is = "not watched for: sandbox.protect is empty, or calls can write nothing"
		return f
	}
	directories, why, unseen := protect.Survey(daemon.Protection(cfg))
	f.Is, f.OK = fmt.Sprintf("%d directories to watch", directories), !unseen
	if why != "" {
		f.Is += "; " + why
		f.Fix = fmt.Sprintf("sudo sysctl -w fs.inotify.max_user_watches=%d, or work in a smaller directory", 3*directories)
	}
	return f
}
