package workspaces

import (
	"os"
	"path/filepath"

	"github.com/toold/toold/internal/paths"
)

// Discover returns the workspace for dir, a canonical path: the registered one that contains it, else the root of
// its git repository, else dir. A repository of another user or around home does not count.
func Discover(registered []string, dir, home string) string {
	if root := Containing(registered, dir); root != "" {
		return root
	}
	for at := dir; at != filepath.Dir(at) && (home == "" || !paths.Within(home, at)); at = filepath.Dir(at) {
		if info, err := os.Lstat(filepath.Join(at, ".git")); err == nil {
			if owned(info) && !containsAny(at, registered) {
				return at
			}
			break
		}
	}
	return dir
}

func containsAny(dir string, registered []string) bool {
	for _, root := range registered {
		if paths.Within(root, dir) {
			return true
		}
	}
	return false
}
