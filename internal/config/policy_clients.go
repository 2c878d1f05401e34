package config

import (
	"io/fs"
	"os"
	"path/filepath"

	"github.com/toold/toold/policy"
)

// readClients reads the clients' policies. Relative paths count from the policy's directory.
func (l *layer) readClients(open func(string, int, fs.FileMode) (*os.File, error)) error {
	for _, named := range l.named {
		switch {
		case named.Match.Client == "" && named.Match.Agent == "":
			return l.decoder.errorAt(named.At, "clients: match names neither a client nor an agent; rules for everybody stand in this file itself")
		case named.Policy == "":
			return l.decoder.errorAt(named.At, "clients: policy names no file")
		}
		path := named.Policy
		if !filepath.IsAbs(path) {
			path = filepath.Join(filepath.Dir(l.file.Name), path)
		}
		src, err := readRegular(open, path)
		if err != nil {
			return l.decoder.errorAt(named.At, "cannot read the clients' policy: %v", err)
		}
		own, err := parsePolicy(path, src, policy.Allow, "")
		if err != nil {
			return err
		}
		if len(own.named) > 0 {
			return own.decoder.errorAt(own.named[0].At, "clients: a clients' policy cannot name others")
		}
		l.clients = append(l.clients, own)
		l.file.Clients = append(l.file.Clients, policy.Client{Name: named.Match.Client, Agent: named.Match.Agent, File: own.file})
	}
	return nil
}

// PolicyFiles returns the files that the user's policy at path consists of: itself
// and those that it names for clients. A policy that cannot be read is one file.
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
