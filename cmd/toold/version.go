package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/toold/toold/internal/daemon"

	"github.com/spf13/cobra"
)

// version is the release this source is on the way to.
const version = "0.1.0-dev"

func versionCommand(g *global) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return g.print(map[string]any{
				"version": version, "protocol": daemon.Protocol, "go": runtime.Version(),
				"os": runtime.GOOS, "arch": runtime.GOARCH, "revision": revision(),
			}, versionText())
		},
	}
}

func versionText() string {
	return fmt.Sprintf("toold %s %s/%s %s\n", version, runtime.GOOS, runtime.GOARCH, revision())
}

func revision() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	rev, dirty := "unknown", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision" && len(s.Value) >= 12:
			rev = s.Value[:12]
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "+changes"
		}
	}
	return rev + dirty
}
