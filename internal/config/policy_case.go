package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
)

const maxProbed = 4096

type disk struct {
	names func(dir string) []string // what is in a folder; nothing when it cannot be read
	same  func(a, b string) bool    // whether two paths lead to one file
}

func foldsCase(dir string) bool { return disk{namesIn, sameFile}.folds(dir) }

// folds looks for names by another spelling, and writes nothing.
func (d disk) folds(dir string) bool {
	names := d.names(dir)
	for _, name := range names {
		if other := swapCase(name); other != name {
			// A second name that is listed is a file of its own, such as a hard link.
			return d.same(filepath.Join(dir, name), filepath.Join(dir, other)) && !slices.Contains(names, other)
		}
	}
	parent, base := filepath.Split(filepath.Clean(dir))
	other := swapCase(base)
	return other != base && d.same(filepath.Join(parent, base), filepath.Join(parent, other)) && !slices.Contains(d.names(parent), other)
}

func namesIn(dir string) []string {
	f, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer f.Close()
	names, _ := f.Readdirnames(maxProbed)
	return names
}

func sameFile(a, b string) bool {
	one, err := os.Lstat(a)
	if err != nil {
		return false
	}
	two, err := os.Lstat(b)
	return err == nil && os.SameFile(one, two)
}

func swapCase(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsUpper(r) {
			return unicode.ToLower(r)
		}
		return unicode.ToUpper(r)
	}, s)
}
