package connect

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/toold/toold/internal/edit"
	"github.com/toold/toold/internal/statedir"
)

// record is how an agent was connected, in the state directory.
type record struct {
	Agent string    `json:"agent"`
	At    time.Time `json:"at"`
	Files []changed `json:"files"`
}

// changed is a file that connect has changed.
type changed struct {
	Path    string      `json:"path"`
	Existed bool        `json:"existed"`
	Mode    fs.FileMode `json:"mode"`
	Backup  string      `json:"backup"`          // file with the original content
	Vault   string      `json:"vault,omitempty"` // file that Path links to
	After   string      `json:"after"`           // SHA-256 of the content
	Whole   bool        `json:"whole"`           // the file belongs to toold alone
	Format  edit.Format `json:"format,omitempty"`
	Done    []edit.Done `json:"done,omitempty"`
	Edited  bool        `json:"edited,omitempty"` // changed by others in between, so Backup is not the original
	Dirs    []string    `json:"dirs,omitempty"`   // created directories, outermost first
}

func recordFile(stateDir, agent string) string {
	return filepath.Join(stateDir, "connect", agent+".json")
}

// Connected returns the names of the connected agents.
func Connected(stateDir string) (names []string, err error) {
	entries, err := os.ReadDir(filepath.Join(stateDir, "connect"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), ".json"); ok {
			names = append(names, name)
		}
	}
	return names, err
}

func readRecord(stateDir, agent string) (r record, err error) {
	text, err := os.ReadFile(recordFile(stateDir, agent))
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err != nil {
		return r, fmt.Errorf("cannot read how %s was connected: %w", agent, err)
	}
	return r, nil
}

func (r record) write(stateDir string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	path := recordFile(stateDir, r.Agent)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("cannot keep the record of the change: %w", err)
	}
	if err := replace(path, append(text, '\n'), 0o600); err != nil {
		return fmt.Errorf("cannot keep the record of the change: %w", err)
	}
	return nil
}

func digest(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

func replace(path string, text []byte, mode fs.FileMode) error {
	if err := statedir.Replace(path, text, mode); err != nil {
		return fmt.Errorf("cannot write %s: %w", path, err)
	}
	return nil
}

// link replaces a file by a link.
func link(to, path string) error {
	beside := path + ".new-link"
	err := os.Symlink(to, beside)
	if errors.Is(err, fs.ErrExist) { // left by a killed process
		err = errors.Join(os.Remove(beside), os.Symlink(to, beside))
	}
	if err == nil {
		err = os.Rename(beside, path)
	}
	return err
}

// makeDirs creates a directory, and returns those that did not exist, outermost first.
func makeDirs(dir string) (made []string, err error) {
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Stat(at); err == nil || at == filepath.Dir(at) {
			break
		}
		made = append([]string{at}, made...)
	}
	return made, os.MkdirAll(dir, 0o700)
}
