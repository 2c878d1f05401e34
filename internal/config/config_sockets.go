package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// sockets lists the sockets that calls may use. toold's own is never among them.
func (l *loader) sockets(c *Config, list []scalar) []string {
	var out []string
	for _, s := range list {
		if !s.set {
			continue
		}
		path := l.absolute(s)
		info, err := os.Stat(path)
		switch {
		case path == "":
		case c.Socket != "" && canonical(path) == canonical(c.Socket):
			l.fail(s, "sandbox.unix_sockets cannot name %s: it is where toold itself listens", path)
		case errors.Is(err, fs.ErrNotExist):
			l.warn("sandbox.unix_sockets: %s does not exist: calls reach it once it does, if its folders are there by then", path)
			out = append(out, filepath.Clean(path))
		case err != nil:
			l.fail(s, "sandbox.unix_sockets: cannot look at %s: %v", path, errors.Unwrap(err))
		case info.Mode()&fs.ModeSocket == 0:
			l.fail(s, "sandbox.unix_sockets: %s is no socket: name each socket that calls may connect to", path)
		default:
			out = append(out, canonical(path))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
