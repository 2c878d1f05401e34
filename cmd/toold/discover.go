package main

import (
	"os"
	"path/filepath"

	"github.com/toold/toold/internal/workspaces"
	"github.com/toold/toold/sandbox"
)

// discover finds the workspace of a person who works in dir, and notes where in it that
// is.
func (g *global) discover(stateDir, dir string) (string, error) {
	list, err := workspaces.In(stateDir).List()
	if err != nil {
		return "", err
	}
	home, err := sandbox.Resolve(os.Getenv("HOME"))
	if err != nil {
		home = ""
	}
	root := workspaces.Discover(workspaces.Paths(list), dir, home)
	g.below = ""
	if below, err := filepath.Rel(root, dir); err == nil && below != "." {
		g.below = below
	}
	return root, nil
}

// from makes a path that a person gave in a subdirectory of the workspace one from its
// root. It does not clean it: link/.. is for the tools to see.
func (g *global) from(path string) string {
	switch {
	case g.below == "" || filepath.IsAbs(path) || len(path) > 0 && path[0] == '~':
		return path
	case path == "":
		return g.below
	}
	return g.below + "/" + path
}
