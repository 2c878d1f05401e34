package bash

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/toold/toold/policy"
	"github.com/toold/toold/shell/programs"
)

func isSource(o programs.Operand) bool { return o.Kind == programs.Read || o.Link }

// staysAfter reports whether files are moved to a path that outlasts the call. An unknown
// destination counts only if the sources are unknown too, and the script mentions no temporary
// files.
func (t *tool) staysAfter(c *programs.Command, dirs []string, script string, effects []policy.Effect) bool {
	known := slices.ContainsFunc(c.Operands, func(o programs.Operand) bool { return isSource(o) && o.Word.Text != "" })
	script = strings.ToLower(script)
	temporary := strings.Contains(script, "tmp") || strings.Contains(script, "mktemp")
	some := false
	for _, o := range c.Operands {
		if isSource(o) || o.Word.Many && !c.Words[len(c.Words)-1].Many {
			continue
		}
		some = true
		path, stays := o.Word.Text, true
		switch {
		case o.Word.Dynamic && path == "":
			stays = !known && !temporary
		case filepath.IsAbs(path):
			stays = !t.endsWithCall(path, o.Word.Dynamic, effects)
		case len(dirs) == 1:
			stays = !t.endsWithCall(dirs[0]+"/"+path, o.Word.Dynamic, effects)
		default:
			stays = !temporary
		}
		if !stays {
			return false
		}
	}
	return some
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
