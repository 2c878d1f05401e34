package spool

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

// Info describes the recorded output of a call.
type Info struct {
	Name    string
	Bytes   int64
	Changed time.Time
}

// List returns the recorded outputs in dir, latest first. dir need not exist.
func List(dir string) ([]Info, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot list recorded output: %w", err)
	}
	var list []Info
	for _, e := range entries {
		if e.IsDir() {
			list = append(list, spoolInfo(dir, e.Name()))
		}
	}
	slices.SortFunc(list, func(a, b Info) int {
		return cmp.Or(b.Changed.Compare(a.Changed), cmp.Compare(a.Name, b.Name))
	})
	return list, nil
}

func spoolInfo(dir, name string) Info {
	i := Info{Name: name}
	for _, file := range fileNames {
		info, err := os.Lstat(filepath.Join(dir, name, file))
		if err != nil {
			continue
		}
		i.Bytes += info.Size()
		if info.ModTime().After(i.Changed) {
			i.Changed = info.ModTime()
		}
	}
	return i
}

// Remove removes the recorded output of a call. For readers this is atomic: it first renames the directory to a name
// that no call has. A crash may leave that directory, which Remove also removes.
func Remove(dir string) error {
	gone := filepath.Join(filepath.Dir(dir), "-"+strings.TrimPrefix(filepath.Base(dir), "-"))
	err := os.RemoveAll(gone)
	if err == nil && gone != dir {
		err = cmp.Or(os.Rename(dir, gone), os.RemoveAll(gone))
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot remove recorded output: %w", err)
	}
	return nil
}
