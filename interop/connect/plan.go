package connect

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toold/toold/internal/display"
	"github.com/toold/toold/internal/edit"
	"github.com/toold/toold/tools/files"
)

// Plan is the change that connects an agent.
type Plan struct {
	Agent Agent
	steps []step
	setup Setup
}

type step struct {
	File
	first   *changed // recorded change of the file by an earlier connect, or nil
	target  string   // path after following links
	vault   string   // file of a Secret, to which target becomes a link
	linked  bool     // target is a link to vault
	existed bool
	before  []byte
	after   []byte
	done    []edit.Done
	base    []byte // text that done applies to, without what first wrote; nil means before
	edited  bool   // base differs from the original
}

// Plan computes the change without making it. The error names the file that cannot be changed.
func (a Agent) Plan(s Setup) (Plan, error) {
	p := Plan{Agent: a, setup: s}
	list, err := a.files(s)
	if err != nil {
		return p, err
	}
	old, err := readRecord(s.StateDir, a.Name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return p, err
	}
	for _, f := range list {
		one, err := plan(f, s.vault(a.Name, f, old), old)
		if err != nil {
			return p, err
		}
		p.steps = append(p.steps, one)
	}
	return p, nil
}

// vault returns the file for the content of a Secret. Each directory has its own.
func (s Setup) vault(agent string, f File, old record) string {
	if !f.Secret {
		return ""
	}
	for _, c := range old.Files {
		if at, linked, err := target(f.Path, c.Vault); err == nil && linked && at == c.Path {
			return c.Vault
		}
	}
	return beside(s.StateDir, agent, f.Path, filepath.Base(f.Path))
}

// beside returns a path in the state directory for a file of an agent.
func beside(stateDir, agent, path, name string) string {
	return filepath.Join(stateDir, "connect", agent+"-"+digest([]byte(path))[:16]+"-"+name)
}

func plan(f File, vault string, old record) (s step, err error) {
	s.File, s.vault = f, vault
	if s.target, s.linked, err = target(f.Path, vault); err != nil {
		return s, err
	}
	if i := slices.IndexFunc(old.Files, func(c changed) bool { return c.Path == s.target }); i >= 0 {
		s.first = &old.Files[i]
	}
	info, err := os.Stat(s.target)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return s, fmt.Errorf("cannot read %s: %w", f.Path, err)
	case !info.Mode().IsRegular():
		return s, fmt.Errorf("cannot change %s: it is no regular file", f.Path)
	default:
		s.existed, s.Mode = true, info.Mode().Perm()
		if s.before, err = os.ReadFile(s.target); err != nil {
			return s, fmt.Errorf("cannot read %s: %w", f.Path, err)
		}
	}
	if err := s.compute(); err != nil {
		return s, err
	}
	if s.existed && s.changes() && s.Mode&0o200 == 0 {
		return s, fmt.Errorf("cannot change %s: it is read-only, so perhaps another program makes it; change it there, or make it writable: chmod u+w %s", f.Path, display.Operand(s.target))
	}
	return s, nil
}

// compute sets after and done.
func (s *step) compute() error {
	if s.Format == "" {
		s.after = s.Content
		return nil
	}
	text, done, err := edit.Apply(s.Format, string(s.before), s.Changes)
	again := s.first != nil && (text != string(s.before) || s.isStale())
	if err == nil && again {
		if err = s.rebase(); err == nil {
			text, done, err = edit.Apply(s.Format, string(s.base), s.Changes)
		}
	}
	if err != nil {
		return fmt.Errorf("cannot change %s: %w; correct it, or set this by hand: see docs/connect.md", s.Path, err)
	}
	s.after, s.done = []byte(text), done
	return nil
}

// isStale reports whether the file has an element that an earlier connect added but this one does not, such as a hook
// that starts another toold.
func (s *step) isStale() bool {
	return slices.ContainsFunc(s.first.Done, func(d edit.Done) bool {
		return d.Include && !d.Has(s.Format, s.Changes) && d.Present(s.Format, string(s.before))
	})
}

// rebase removes what an earlier connect wrote, so that none of it remains.
func (s *step) rebase() error {
	original, err := os.ReadFile(s.first.Backup)
	if err != nil {
		return err
	}
	isOriginal := s.existed == s.first.Existed && bytes.Equal(s.before, original) // connect was killed before it wrote
	isLost := s.linked && !s.existed
	isUnchanged := !s.first.Edited && s.first.After == digest(s.before)
	if isOriginal || isLost || isUnchanged {
		s.base = original
		return nil
	}
	text, _, err := edit.Undo(s.Format, string(s.before), s.first.Done)
	s.base, s.edited = []byte(text), true
	return err
}

func (s *step) changes() bool {
	links := s.Secret && !s.linked
	return !s.existed || links || !bytes.Equal(s.before, s.after)
}

// target follows links, even dangling ones, up to the one to vault.
func target(path, vault string) (at string, linked bool, err error) {
	for range 40 {
		to, err := os.Readlink(path)
		if err != nil || to == vault {
			dir, problem := filepath.EvalSymlinks(filepath.Dir(path))
			if errors.Is(problem, fs.ErrNotExist) {
				return path, err == nil, nil
			}
			return filepath.Join(dir, filepath.Base(path)), err == nil, problem
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(path), to)
		}
		path = to
	}
	return "", false, fmt.Errorf("cannot follow the links of %s", path)
}

// Empty reports whether there is nothing to change.
func (p Plan) Empty() bool {
	return !slices.ContainsFunc(p.steps, func(s step) bool { return s.changes() })
}

// Diff returns the change as a diff, without the token.
func (p Plan) Diff() string {
	var b strings.Builder
	for _, s := range p.steps {
		before, after := string(s.before), string(s.after)
		if p.setup.Token != "" {
			before, after = strings.ReplaceAll(before, p.setup.Token, hidden), strings.ReplaceAll(after, p.setup.Token, hidden)
		}
		from := s.target
		if !s.existed {
			from = os.DevNull
		}
		b.WriteString(files.Diff(from, s.target, before, after))
	}
	return b.String()
}

const hidden = "(a token)"
