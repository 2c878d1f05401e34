package protect

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
)

// A Note is a file next to the quarantine in which a Watcher leaves state for the next one of the same roots.
type Note string

// Note returns the note of a kind for these roots.
func (o Options) Note(kind string) Note {
	if o.Quarantine == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(strings.Join(o.Roots, "\x00")))
	return Note(filepath.Join(o.Quarantine, kind+"-"+hex.EncodeToString(sum[:6])))
}

// Store replaces the content of the note.
func (n Note) Store(v any) {
	text, err := json.Marshal(v)
	if n == "" || err != nil || os.MkdirAll(filepath.Dir(string(n)), 0o700) != nil {
		return
	}
	fresh := string(n) + ".new"
	if os.WriteFile(fresh, text, 0o600) == nil {
		_ = os.Rename(fresh, string(n))
	}
}

// Load decodes the note into v, and reports whether there is a note.
func (n Note) Load(v any) bool {
	text, err := os.ReadFile(string(n))
	return err == nil && json.Unmarshal(text, v) == nil
}

// Remove removes the note.
func (n Note) Remove() {
	if os.Remove(string(n)) != nil {
		_ = os.Truncate(string(n), 0) // an empty note counts as none
	}
}
