package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/toold/toold/policy"
)

// readClients reads the policies of clients. Relative paths are relative to the directory of the policy.
func (l *layer) readClients(open func(string, int, fs.FileMode) (*os.File, error)) error {
	var faults []error
	for _, named := range l.clientRules {
		own, err := l.readClient(named, open)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		l.clients = append(l.clients, own)
		l.file.Clients = append(l.file.Clients, policy.Client{Name: named.Match.Client, Agent: named.Match.Agent, File: own.file})
	}
	return errors.Join(faults...)
}

func (l *layer) readClient(named clientRule, open func(string, int, fs.FileMode) (*os.File, error)) (own layer, err error) {
	switch {
	case named.Match.Client == "" && named.Match.Agent == "":
		return own, l.decoder.errorAt(named.At, "clients: match names neither a client nor an agent; rules for everybody stand in this file itself")
	case named.Policy == "":
		return own, l.decoder.errorAt(named.At, "clients: policy names no file")
	}
	path := named.Policy
	if !filepath.IsAbs(path) {
		path = filepath.Join(filepath.Dir(l.file.Name), path)
	}
	src, err := readRegular(open, path)
	if err != nil {
		return own, l.decoder.errorAt(named.At, "cannot read the clients' policy: %v", err)
	}
	if own, err = parsePolicy(path, src, policy.Allow, ""); err == nil && len(own.clientRules) > 0 {
		err = own.decoder.errorAt(own.clientRules[0].At, "clients: a clients' policy cannot name others")
	}
	return own, err
}

// PolicyFiles returns the user's policy file and the clients' files that it names. An unreadable file names none.
func PolicyFiles(path string) []string {
	if path == "" {
		return nil
	}
	files := []string{path}
	if f, err := ReadPolicy(path); err == nil {
		for _, c := range f.Clients {
			files = append(files, c.File.Name)
		}
	}
	return files
}

const maxProbed = 4096

// disk lists and compares files to find out whether a directory ignores case.
type disk struct {
	names func(dir string) []string // names in a directory; nil if it cannot be read
	same  func(a, b string) bool    // whether both paths name the same file
}

func foldsCase(dir string) bool { return disk{namesIn, sameFile}.folds(dir) }

func (d disk) folds(dir string) bool {
	names := d.names(dir)
	for _, name := range names {
		if other := swapCase(name); other != name {
			// If both names are listed, they are two files, such as hard links.
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
	infoA, errA := os.Lstat(a)
	infoB, errB := os.Lstat(b)
	return errors.Join(errA, errB) == nil && os.SameFile(infoA, infoB)
}

func swapCase(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsUpper(r) {
			return unicode.ToLower(r)
		}
		return unicode.ToUpper(r)
	}, s)
}
