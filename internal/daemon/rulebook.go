package daemon

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/toold/toold/internal/config"
	"github.com/toold/toold/internal/statedir"
	"github.com/toold/toold/policy"
)

// rulebook writes remembered answers to policy files.
type rulebook struct {
	file string // file with the changes made, latest last

	mu sync.Mutex // serialises writers
}

func rulebookIn(stateDir string) *rulebook {
	return &rulebook{file: filepath.Join(stateDir, "remembered.jsonl")}
}

// Entry is an answer that was written to a policy file.
type Entry struct {
	File    string          `json:"file"`
	At      time.Time       `json:"at"`
	Person  string          `json:"person"`
	Call    string          `json:"tool_call_id"`
	Changes []policy.Change `json:"changes"`
	Pieces  []config.Piece  `json:"pieces"`
}

// add changes a policy file. If reload fails, or the change cannot be saved for undo, it restores the file.
func (b *rulebook) add(file string, e Entry, reload func() error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	old, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("cannot read the policy: %w", err)
	}
	note := fmt.Sprintf("remembered %s: %s said yes to %s", e.At.Format(time.DateTime), comment(e.Person), comment(e.Call))
	next, pieces, err := config.EditPolicy(file, old, e.Changes, note)
	if err != nil {
		return err
	}
	e.File, e.Pieces = file, pieces
	list, err := b.entries()
	if err != nil {
		return err
	}
	if err := replaceFile(file, next); err != nil {
		return err
	}
	if err = reload(); err == nil {
		err = b.save(append(list, e))
	}
	if err != nil {
		return errors.Join(fmt.Errorf("the policy with the rule cannot be used, and was put back: %w", err), replaceFile(file, old), reload())
	}
	return nil
}

// Undo removes the latest Entry from its policy file. After an error, it is still the latest one only if the file may be
// corrected.
func Undo(stateDir string) (Entry, error) { return rulebookIn(stateDir).undo() }

func (b *rulebook) undo() (Entry, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	list, err := b.entries()
	if err != nil {
		return Entry{}, err
	}
	if len(list) == 0 {
		return Entry{}, errors.New("no answer has been written into a policy; toold approve ID --remember command, prefix or rule does so")
	}
	last := list[len(list)-1]
	src, err := os.ReadFile(last.File)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return last, errors.Join(fmt.Errorf("the policy is gone: %w", err), b.save(list[:len(list)-1]))
	case err != nil:
		return last, fmt.Errorf("cannot read the policy: %w", err)
	}
	out, changed := config.UndoPolicy(last.File, src, last.Changes, last.Pieces)
	if _, faulty := errors.AsType[*config.Error](changed); faulty {
		return last, changed
	}
	if changed == nil {
		err = replaceFile(last.File, out)
	}
	if err == nil {
		err = b.save(list[:len(list)-1])
	}
	return last, errors.Join(changed, err)
}

func (b *rulebook) entries() (list []Entry, err error) {
	text, err := os.ReadFile(b.file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for line := range bytes.Lines(text) {
		var e Entry
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, fmt.Errorf("cannot read %s: %w", b.file, err)
		}
		list = append(list, e)
	}
	return list, err
}

func (b *rulebook) save(list []Entry) error {
	var text bytes.Buffer
	for _, e := range list {
		if err := json.NewEncoder(&text).Encode(e); err != nil {
			return err
		}
	}
	return replaceFile(b.file, text.Bytes())
}

func comment(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || strings.ContainsRune("\u007f\u0085\u2028\u2029", r) {
			return '?'
		}
		return r
	}, s)
}

// replaceFile atomically replaces a file, or the target of a link.
func replaceFile(path string, content []byte) error {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	mode := fs.FileMode(0o600)
	if info, err := os.Stat(path); err == nil {
		mode = info.Mode().Perm()
	}
	if err := statedir.Replace(path, content, mode); err != nil {
		return fmt.Errorf("cannot write %s: %w", path, err)
	}
	return nil
}
