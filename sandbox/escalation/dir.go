package escalation

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/toold/toold/internal/paths"
	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/sandbox/launch"
)

// dir checks the requested directory and keeps it open. The path must not contain links or "..", so that what a
// person reads is what becomes writable.
func (b Limits) dir(g *Escalation, p sandbox.Profile) error {
	path := g.words.Write
	if path == "" {
		return nil
	}
	if max(p.Mode, g.mode) == sandbox.ReadOnly {
		return fmt.Errorf("nothing can be written in the profile %s, in which the call runs: widen the profile as well", p.Mode)
	}
	isClean := filepath.IsAbs(path) && filepath.Clean(path) == path
	if !isClean || strings.IndexFunc(path, unseen) >= 0 || len(path) > 4096 {
		return fmt.Errorf("%s cannot be made writable: name the directory by its absolute path, without . and .. and invisible characters", text(path))
	}
	canonical, links, err := paths.ResolveLinks(path)
	switch {
	case err != nil:
		return err
	case len(links) > 0:
		return fmt.Errorf("%s leads through a link to %s: name that directory itself", path, text(canonical))
	}
	if err := b.checkDir(path, p); err != nil {
		return err
	}
	held, is, err := launch.Pin(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s does not exist: create the directory first, or name its parent", path)
	}
	g.pinned, g.is = held, is
	return err
}

func (b Limits) checkDir(path string, p sandbox.Profile) error {
	for _, root := range append([]string{p.Workspace}, p.Write...) {
		switch {
		case root == "":
		case paths.Within(path, root):
			return fmt.Errorf("%s is in %s, which calls may write anyway", path, root)
		case paths.Within(root, path):
			return fmt.Errorf("%s contains %s, which calls may write anyway: name a directory beside it", path, root)
		}
	}
	if !slices.ContainsFunc(b.Write, func(root string) bool { return paths.Within(path, root) }) {
		most := ""
		if len(b.Write) > 0 {
			most = "what is in " + strings.Join(b.Write, ", ")
		}
		return beyond("the directory "+path, "write", most)
	}
	for _, hidden := range p.Hide {
		if paths.Within(path, hidden) {
			return fmt.Errorf("%s is hidden from calls (sandbox.hide, or one of toold's own files)", path)
		}
	}
	for _, name := range b.Protect {
		first, _, nested := strings.Cut(name, "/")
		if nested && first != ".git" {
			first = name
		}
		if strings.Contains(path+"/", "/"+first+"/") {
			return fmt.Errorf("%s is in %s, which no call may change (sandbox.protect)", path, first)
		}
	}
	return nil
}

func unseen(r rune) bool { return !unicode.IsPrint(r) }
