package connect

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/toold/toold/internal/edit"
	"github.com/toold/toold/tools/files"
)

// Apply makes the change and records it. If it cannot write one file, it restores the others.
func (p Plan) Apply() error {
	old, err := readRecord(p.setup.StateDir, p.Agent.Name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	r := record{Agent: p.Agent.Name, At: time.Now().UTC()}
	for _, c := range old.Files { // files in other directories, such as another CODEX_HOME
		if !slices.ContainsFunc(p.steps, func(s step) bool { return s.target == c.Path }) {
			r.Files = append(r.Files, c)
		}
	}
	others := len(r.Files)
	for _, s := range p.steps {
		if before, _ := os.ReadFile(s.target); !bytes.Equal(before, s.before) {
			return fmt.Errorf("nothing was changed: %s was modified after the change was shown; try again", s.Path)
		}
		c := s.recorded()
		if c.Backup == "" {
			c.Backup = beside(p.setup.StateDir, r.Agent, c.Path, "before")
			if err := writeBackup(c.Backup, s.before); err != nil {
				return err
			}
		}
		r.Files = append(r.Files, c)
	}
	if err := r.write(p.setup.StateDir); err != nil { // before writing, so that everything written can be undone
		return err
	}
	for i, s := range p.steps {
		if err := s.write(&r.Files[others+i]); err != nil {
			if problem := p.rollBack(i); problem != nil { // the backups are still needed
				return errors.Join(err, problem)
			}
			return errors.Join(err, restoreRecord(p.setup.StateDir, old, r))
		}
	}
	return r.write(p.setup.StateDir)
}

// recorded describes the change to a file for the record. The original is that of an earlier change, unless Undo would
// not restore that: the file was removed since, or belongs to toold alone and was replaced.
func (s *step) recorded() changed {
	c := changed{
		Path: s.target, Vault: s.vault, Existed: s.existed, Mode: s.Mode, After: digest(s.after),
		Whole: s.Format == "", Format: s.Format, Done: s.done,
	}
	if s.first == nil {
		return c
	}
	first, same := *s.first, s.first.After == digest(s.before)
	c.Dirs = first.Dirs
	removed, replaced := !s.existed && !s.linked, c.Whole && !same
	if removed || replaced {
		return c
	}
	c.Existed, c.Mode, c.Backup, c.Edited = first.Existed, first.Mode, first.Backup, s.edited
	if s.base == nil {
		c.Done, c.Edited = first.Done, first.Edited || !same
	}
	return c
}

func writeBackup(path string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("cannot keep a backup: %w", err)
	}
	return replace(path, text, 0o600)
}

// write writes the new content, and records the directories that it creates.
func (s *step) write(c *changed) error {
	if !s.changes() {
		return nil
	}
	made, err := makeDirs(filepath.Dir(s.target))
	c.Dirs = append(c.Dirs, made...)
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", s.Path, err)
	}
	if s.vault == "" {
		return replace(s.target, s.after, s.Mode)
	}
	if err := replace(s.vault, s.after, 0o600); err != nil || s.linked {
		return err
	}
	return link(s.vault, s.target)
}

// rollBack restores what the first n steps have written.
func (p Plan) rollBack(n int) (err error) {
	for _, s := range p.steps[:n] {
		switch {
		case !s.changes():
		case s.linked:
			err = errors.Join(err, replace(s.vault, s.before, 0o600))
		case s.existed:
			err = errors.Join(err, replace(s.target, s.before, s.Mode))
		default:
			err = errors.Join(err, os.Remove(s.target))
		}
	}
	return err
}

// restoreRecord restores the record before a failed Apply, or removes what that has made if there was none.
func restoreRecord(stateDir string, old, failed record) error {
	if old.Agent != "" {
		return old.write(stateDir)
	}
	for _, c := range failed.Files {
		c.removeDirs()
		c.removeBackups()
	}
	return os.Remove(recordFile(stateDir, failed.Agent))
}

// Undone is the result of Undo for a file.
type Undone struct {
	Path     string   `json:"path"`
	Restored bool     `json:"restored"`       // to the original, or removed if there was none
	Diff     string   `json:"diff,omitempty"` // change made to a file that others had changed
	Kept     []string `json:"kept,omitempty"` // settings that have another value now
}

// Undo reverts the changes for an agent. From a file that others have changed it removes only what connect wrote.
func Undo(stateDir, agent string) (list []Undone, err error) {
	r, err := readRecord(stateDir, agent)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for _, c := range slices.Backward(r.Files) {
		one, err := c.undo()
		if err != nil {
			return list, fmt.Errorf("cannot put %s back: %w; what it was is in %s", c.Path, err, c.Backup)
		}
		list = append(list, one)
	}
	if err := os.Remove(recordFile(stateDir, agent)); err != nil { // first, because it is useless without the backups
		return list, fmt.Errorf("cannot remove the record of the change: %w", err)
	}
	for _, c := range r.Files {
		c.removeBackups()
	}
	return list, nil
}

// undo restores the file if it is as connect left it. Otherwise it removes what connect wrote, or leaves it alone.
func (c changed) undo() (Undone, error) {
	u := Undone{Path: c.Path}
	at, linked, err := target(c.Path, c.Vault) // the user may have replaced it by a link
	if err != nil {
		return u, err
	}
	c.Path = at
	text, err := os.ReadFile(c.Path)
	missing := errors.Is(err, fs.ErrNotExist) // if linked, from the vault
	switch same := digest(text) == c.After && !c.Edited; {
	case missing && linked, err == nil && same:
		u.Restored = true
		return u, c.restore()
	case missing && !c.Existed:
		u.Restored = true
		c.removeDirs()
		return u, nil
	case missing:
		u.Kept = []string{"all of it: the file was removed since"}
		return u, nil
	case err != nil:
		return u, err
	case c.Whole:
		u.Kept = []string{"all of it: the file was changed since"}
		return u, nil
	}
	return c.undoEdits(u, string(text), linked)
}

// undoEdits removes what connect wrote from a text that others have changed.
func (c changed) undoEdits(u Undone, text string, linked bool) (Undone, error) {
	after, kept, err := edit.Undo(c.Format, text, c.Done)
	if err != nil {
		return u, err
	}
	for _, k := range kept {
		u.Kept = append(u.Kept, k.String())
	}
	u.Diff = files.Diff(c.Path, c.Path, text, after)
	info, err := os.Stat(c.Path)
	if same := after == text && !linked; err != nil || same {
		return u, err
	}
	return u, replace(c.Path, []byte(after), info.Mode().Perm())
}

// restore writes the original, or removes the file if there was none.
func (c changed) restore() error {
	if c.Existed {
		before, err := os.ReadFile(c.Backup)
		if err != nil {
			return err
		}
		mode := c.Mode
		if info, err := os.Stat(c.Path); err == nil && c.Vault == "" {
			mode = info.Mode().Perm() // Apply did not change it
		}
		return replace(c.Path, before, mode)
	}
	if err := os.Remove(c.Path); err != nil {
		return err
	}
	c.removeDirs()
	return nil
}

func (c changed) removeBackups() {
	os.Remove(c.Backup)
	if c.Vault != "" {
		os.Remove(c.Vault)
	}
}

// removeDirs removes the created directories that are empty.
func (c changed) removeDirs() {
	for _, dir := range slices.Backward(c.Dirs) {
		if os.Remove(dir) != nil {
			return
		}
	}
}
