// Package quarantine keeps copies of what calls made and toold removed, until a person
// restores or discards them or Prune does.
//
// Everything is copied and removed by descriptors, following no link, since other calls
// may still hold it. The package does not decide what is removed.
package quarantine

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// The names in an item, and the time in its own.
const (
	takenFrom  = "taken-from"
	taken      = "taken"
	notKept    = "not-kept" // lists what was not copied: links, FIFOs, what was too large
	cellLayout = "20060102T150405.000Z"
)

// Item is something that was removed.
type Item struct {
	ID    string    `json:"id"`    // its name in the quarantine
	From  string    `json:"from"`  // where it was
	Kept  string    `json:"kept"`  // where it is
	At    time.Time `json:"at"`    // when it was taken
	Bytes int64     `json:"bytes"` // of all files in it
}

// Items lists a quarantine, the latest first. One that does not exist is empty; what
// disappears meanwhile is left out.
func Items(quarantine string) ([]Item, error) {
	entries, err := os.ReadDir(quarantine)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("cannot list the quarantine: %w", err)
	}
	var list []Item
	for _, e := range entries {
		if i, ok := item(quarantine, e.Name()); ok {
			list = append(list, i)
		}
	}
	slices.SortFunc(list, func(a, b Item) int { return cmp.Or(b.At.Compare(a.At), cmp.Compare(a.ID, b.ID)) })
	return list, nil
}

func item(quarantine, id string) (Item, bool) {
	stamp, _, ok := strings.Cut(id, "-")
	at, err := time.Parse(cellLayout, stamp)
	if !ok || err != nil || filepath.Base(id) != id {
		return Item{}, false
	}
	cell := filepath.Join(quarantine, id)
	if info, err := os.Lstat(cell); err != nil || !info.IsDir() {
		return Item{}, false
	}
	from, _ := os.ReadFile(filepath.Join(cell, takenFrom)) // without it the item cannot be put back
	i := Item{ID: id, From: strings.TrimSuffix(string(from), "\n"), Kept: filepath.Join(cell, taken), At: at}
	root, err := os.OpenRoot(cell)
	if err != nil {
		return Item{}, false
	}
	defer root.Close()
	_ = fs.WalkDir(root.FS(), ".", func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil // what cannot be read counts nothing
		}
		if info, err := d.Info(); err == nil && info.Mode().IsRegular() {
			i.Bytes += info.Size()
		}
		return nil
	})
	return i, true
}

// Discard removes an item for good.
func Discard(quarantine, id string) error {
	i, ok := item(quarantine, id)
	if !ok {
		return fmt.Errorf("the quarantine has no item %q", id)
	}
	if err := removeCell(quarantine, i.ID); err != nil {
		return fmt.Errorf("cannot remove %s from the quarantine: %w", id, err)
	}
	return nil
}
