// Package workspaces stores the list of registered directories, and opens what the calls of each share. Only commands
// that a person runs change the list; a Set follows it.
package workspaces

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/toold/toold/internal/paths"
	"github.com/toold/toold/internal/statedir"
)

const (
	fileName      = "workspaces.json"
	formatVersion = 1
)

// Workspace is a registered directory.
type Workspace struct {
	Path    string    `json:"path"` // canonical
	AddedAt time.Time `json:"added_at"`
}

type content struct {
	Version    int         `json:"version"`
	Workspaces []Workspace `json:"workspaces"`
}

// Registry is the list of workspaces of a state directory. Several processes may use it.
type Registry struct{ dir string }

// In returns the registry of a state directory.
func In(stateDir string) Registry { return Registry{stateDir} }

func (r Registry) path() string { return filepath.Join(r.dir, fileName) }

// List returns the workspaces sorted by path. A missing file is an empty list, an unreadable one an error.
func (r Registry) List() ([]Workspace, error) {
	text, err := os.ReadFile(r.path())
	if r.dir == "" || errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the list of workspaces: %w", err)
	}
	var c content
	if err := json.Unmarshal(text, &c); err != nil {
		return nil, fmt.Errorf("cannot read the list of workspaces in %s: %w; correct it, or remove it and register them again: toold workspaces add PATH", r.path(), err)
	}
	if c.Version != formatVersion {
		return nil, fmt.Errorf("cannot read the list of workspaces in %s: it has version %d, and this toold reads version %d", r.path(), c.Version, formatVersion)
	}
	for _, w := range c.Workspaces {
		if !filepath.IsAbs(w.Path) || filepath.Clean(w.Path) != w.Path || w.Path == "/" {
			return nil, fmt.Errorf("cannot read the list of workspaces in %s: %q is not the path of a workspace", r.path(), w.Path)
		}
	}
	return c.Workspaces, nil
}

// NestedError means that a workspace would contain another or be inside of it. Calls may write everywhere in their
// own workspace, and nowhere in others.
type NestedError struct{ Path, Other string }

func (e *NestedError) Error() string {
	how := "lies in the workspace"
	if paths.Within(e.Other, e.Path) {
		how = "contains the workspace"
	}
	return fmt.Sprintf("cannot register %s: it %s %s; use that one, or remove it first: toold workspaces remove %[3]s", e.Path, how, e.Other)
}

// Add registers a canonical path, and reports whether it is new. The error may be a *NestedError.
func (r Registry) Add(ctx context.Context, path string) (added bool, err error) {
	if !filepath.IsAbs(path) {
		return false, fmt.Errorf("cannot register %q: it is not an absolute path", path)
	}
	err = r.change(ctx, func(list []Workspace) ([]Workspace, error) {
		for _, w := range list {
			switch {
			case w.Path == path:
				return list, nil
			case paths.Within(w.Path, path) || paths.Within(path, w.Path):
				return nil, &NestedError{path, w.Path}
			}
		}
		added = true
		return append(list, Workspace{path, time.Now().UTC().Truncate(time.Second)}), nil
	})
	return added && err == nil, err
}

// Remove removes a path, and reports whether it was registered.
func (r Registry) Remove(ctx context.Context, path string) (removed bool, err error) {
	err = r.change(ctx, func(list []Workspace) ([]Workspace, error) {
		kept := slices.DeleteFunc(slices.Clone(list), func(w Workspace) bool { return w.Path == path })
		removed = len(kept) < len(list)
		return kept, nil
	})
	return removed && err == nil, err
}

// change replaces the list by what edit returns, unless that is the same.
func (r Registry) change(ctx context.Context, edit func([]Workspace) ([]Workspace, error)) error {
	if err := os.MkdirAll(r.dir, 0o700); err != nil {
		return fmt.Errorf("cannot make the state directory: %w; choose another one with --state-dir", err)
	}
	return statedir.Alone(ctx, r.dir, fileName, func() error {
		list, err := r.List()
		if err != nil {
			return err
		}
		next, err := edit(list)
		if err != nil || slices.Equal(next, list) {
			return err
		}
		slices.SortFunc(next, func(a, b Workspace) int { return strings.Compare(a.Path, b.Path) })
		return r.write(next)
	})
}

func (r Registry) write(list []Workspace) error {
	text, err := json.MarshalIndent(content{formatVersion, append([]Workspace{}, list...)}, "", "  ")
	if err != nil {
		return err
	}
	if err := statedir.Replace(r.path(), append(text, '\n'), 0o600); err != nil {
		return fmt.Errorf("cannot write the list of workspaces: %w", err)
	}
	return nil
}

// Containing returns the workspace that contains a canonical path, or "".
func Containing(list []string, path string) string {
	i := slices.IndexFunc(list, func(root string) bool { return paths.Within(path, root) })
	if i < 0 {
		return ""
	}
	return list[i]
}

// Paths returns the paths of workspaces.
func Paths(list []Workspace) []string {
	paths := make([]string, len(list))
	for i, w := range list {
		paths[i] = w.Path
	}
	return paths
}

// Discover returns the workspace for dir, a canonical path: the registered one that contains it, otherwise the root
// of its git repository, otherwise dir. A repository of another user, or one that contains home, does not count.
func Discover(registered []string, dir, home string) string {
	if root := Containing(registered, dir); root != "" {
		return root
	}
	for at := dir; at != filepath.Dir(at) && (home == "" || !paths.Within(home, at)); at = filepath.Dir(at) {
		if info, err := os.Lstat(filepath.Join(at, ".git")); err == nil {
			containsOther := slices.ContainsFunc(registered, func(root string) bool { return paths.Within(root, at) })
			if owned(info) && !containsOther {
				return at
			}
			break
		}
	}
	return dir
}

func owned(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid()
}
