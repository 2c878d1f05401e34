package bash

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/toold/toold/internal/paths"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/shell/programs"
)

func isSource(o programs.Operand) bool { return o.Kind == programs.Read || o.Link }

// staysAfter reports whether files are moved to a path that outlasts the call. An unknown destination counts only if
// the sources are unknown too and the script mentions no temporary files. A directory that tools recreate may be
// removed later, so it does not count.
func (t *tool) staysAfter(c *programs.Command, dirs []string, script string, effects []policy.Effect) bool {
	if !c.Moves {
		return false
	}
	known := slices.ContainsFunc(c.Operands, func(o programs.Operand) bool { return isSource(o) && o.Word.Text != "" })
	script = strings.ToLower(script)
	temporary := strings.Contains(script, "tmp") || strings.Contains(script, "mktemp")
	some, work := false, t.movesFromWork(c, dirs)
	for _, o := range c.Operands {
		if isSource(o) || o.Word.Many && !c.Words[len(c.Words)-1].Many {
			continue
		}
		some = true
		path, stays := inDir(o.Word.Text, dirs), true
		switch {
		case o.Word.Dynamic && path == "":
			stays = !known && !temporary
		case filepath.IsAbs(path):
			stays = t.outlasts(path, o.Word.Dynamic, work, effects)
		default:
			stays = !temporary
		}
		if !stays {
			return false
		}
	}
	return some
}

func inDir(path string, dirs []string) string {
	if path == "" || filepath.IsAbs(path) || len(dirs) != 1 {
		return path
	}
	return dirs[0] + "/" + path
}

// outlasts reports whether files moved to a path remain there. work means that tools cannot recreate them.
func (t *tool) outlasts(path string, dynamic, work bool, effects []policy.Effect) bool {
	ends := t.endsWithCall(path, dynamic, effects)
	return !ends && !(work && t.isDisposable(path))
}

// movesFromWork reports whether a source may be outside of disposable directories.
func (t *tool) movesFromWork(c *programs.Command, dirs []string) bool {
	return len(dirs) != 1 || slices.ContainsFunc(c.Operands, func(o programs.Operand) bool {
		return isSource(o) && (o.Word.Dynamic || !t.isDisposable(absolute(o.Word.Text, dirs[0])))
	})
}

// isDisposable reports whether a path is in a directory that tools recreate, which needs no approval to be removed.
func (t *tool) isDisposable(path string) bool {
	l := t.removal()
	for dir := range paths.Up(filepath.Clean(path)) {
		if dir == t.options.Workspace {
			break
		}
		if l.isMade(dir) {
			return true
		}
	}
	return false
}

func (t *tool) endsWithCall(path string, dynamic bool, effects []policy.Effect) bool {
	path = filepath.Clean(path)
	paths := []string{path}
	for i := range effects {
		if e := &effects[i]; e.Kind == policy.Write && e.Path == path {
			paths = append(paths, e.Canonical)
		}
	}
	return slices.ContainsFunc(paths, func(p string) bool {
		begins := dynamic && (strings.HasPrefix("/tmp/", p) || strings.HasPrefix("/var/tmp/", p))
		return begins || strings.HasPrefix(p, "/dev/") || t.options.Profile.Scratch(p)
	})
}
