// Package quarantine keeps copies of files that calls created and toold removed, until a person restores or discards
// them, or Prune discards them.
//
// It copies and removes through descriptors and follows no links, since other calls may have the files open.
//
// The id of an item ends with a checksum of its files. The return of the call names the id, so the record of that call
// shows whether the copy is what was removed.
package quarantine

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// File names in an item, and the time format of its id.
const (
	takenFrom  = "taken-from"
	taken      = "taken"
	notKept    = "not-kept" // lists what was not copied: links, FIFOs and files that are too large
	cellLayout = "20060102T150405.000Z"
)

// mostBytes is the maximum size of an item.
const mostBytes = 64 << 20

// Item is a removed file or directory.
type Item struct {
	ID    string    `json:"id"`
	From  string    `json:"from"`
	Kept  string    `json:"kept"`
	At    time.Time `json:"at"`
	Bytes int64     `json:"bytes"`
}

// ErrNotKept is an error of Take.
var ErrNotKept = errors.New("cannot keep all of it in the quarantine")

// Errors of Check.
var (
	ErrChanged = errors.New("it was changed since it was removed, or the machine crashed before all of it was on the disk")
	ErrPartial = errors.New("its name has no checksum: there was no room for all of it, toold was killed while it was copied or removed, or it was renamed")
)

// Check returns ErrChanged if the item's files differ from the checksum in its id, or ErrPartial if it has none. It
// returns nil if the item has been removed.
func (i Item) Check() error {
	_, recorded, _ := strings.Cut(i.ID, "-")
	if len(recorded) != sumLength {
		return ErrPartial
	}
	cell := filepath.Dir(i.Kept)
	is, err := sum(cell)
	if _, missing := os.Lstat(cell); errors.Is(missing, fs.ErrNotExist) {
		return nil
	}
	if err == nil && is != recorded {
		err = ErrChanged
	}
	return err
}

const sumLength = 26

// sum returns a checksum of the names, types and contents of the files in a directory.
func sum(cell string) (string, error) {
	all := sha256.New()
	err := filepath.WalkDir(cell, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		content := sha256.New()
		if d.Type().IsRegular() {
			err = read(path, content)
		}
		fmt.Fprintf(all, "%s %x %q\n", d.Type(), content.Sum(nil), path[len(cell):])
		return err
	})
	return strings.ToLower(base32.StdEncoding.EncodeToString(all.Sum(nil)))[:sumLength], err
}

// read reads a regular file up to the limit of what is kept.
func read(path string, to io.Writer) error {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is no file")
	}
	if err == nil {
		_, err = io.Copy(to, io.LimitReader(f, mostBytes+1))
	}
	return err
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
	var from strings.Builder
	_ = read(filepath.Join(cell, takenFrom), &from) // without it the item cannot be restored
	i := Item{ID: id, From: strings.TrimSuffix(from.String(), "\n"), Kept: filepath.Join(cell, taken), At: at}
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
	partial := i.At.Format(cellLayout) + "-" + rand.Text()[:6] // while files are removed
	if os.Rename(filepath.Join(quarantine, i.ID), filepath.Join(quarantine, partial)) == nil {
		i.ID = partial
	}
	if err := removeItem(quarantine, i.ID); err != nil {
		return fmt.Errorf("cannot remove %s from the quarantine: %w", id, err)
	}
	return nil
}
