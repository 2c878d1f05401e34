package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toold/toold/internal/daemon"
)

const version = "0.1.0-dev"

func versionCommand(g *global) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			revision, date := built()
			return g.Print(map[string]any{
				"version": version, "protocol": daemon.Protocol, "go": runtime.Version(),
				"os": runtime.GOOS, "arch": runtime.GOARCH, "revision": revision, "date": date,
			}, versionText())
		},
	}
}

func versionText() string {
	revision, date := built()
	return strings.TrimSpace(fmt.Sprintf("toold %s %s/%s %s %s", version, runtime.GOOS, runtime.GOARCH, revision, date)) + "\n"
}

// built returns the commit of this program and its date.
func built() (revision, date string) {
	revision = "unknown"
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return revision, ""
	}
	dirty := ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision" && len(s.Value) >= 12:
			revision = s.Value[:12]
		case s.Key == "vcs.time":
			date = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "+changes"
		}
	}
	return revision + dirty, date
}
