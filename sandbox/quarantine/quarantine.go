// Package quarantine keeps copies of files that calls created and toold removed, until a person restores or discards
// them, or Prune discards them.
//
// It copies and removes through descriptors and follows no links, since other calls may have the files open.
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

// File names in an item, and the time format of its id.
const (
	takenFrom  = "taken-from"
	taken      = "taken"
	notKept    = "not-kept" // lists what was not copied: links, FIFOs and files that are too large
	cellLayout = "20060102T150405.000Z"
)

// Item is a removed file or directory.
type Item struct {
	ID    string    `json:"id"`
	From  string    `json:"from"`
	Kept  string    `json:"kept"`
	At    time.Time `json:"at"`
	Bytes int64     `json:"bytes"`
}

// Items lists a quarantine, latest first. It returns none if the quarantine does not exist, and skips items that
// disappear meanwhile.
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
	from, _ := os.ReadFile(filepath.Join(cell, takenFrom)) // without it the item cannot be restored
	i := Item{ID: id, From: strings.TrimSuffix(string(from), "\n"), Kept: filepath.Join(cell, taken), At: at}
	root, err := os.OpenRoot(cell)
	if err != nil {
		return Item{}, false
	}
	defer root.Close()
	_ = fs.WalkDir(root.FS(), ".", func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		if info, err := d.Info(); err == nil && info.Mode().IsRegular() {
			i.Bytes += info.Size()
		}
		return nil
	})
	return i, true
}

// Discard deletes an item permanently.
func Discard(quarantine, id string) error {
	i, ok := item(quarantine, id)
	if !ok {
		return fmt.Errorf("the quarantine has no item %q", id)
	}
	if err := removeItem(quarantine, i.ID); err != nil {
		return fmt.Errorf("cannot remove %s from the quarantine: %w", id, err)
	}
	return nil
}
