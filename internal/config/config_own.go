package config

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toold/toold/internal/paths"
	"github.com/toold/toold/internal/statedir"
)

// HeadDir returns the directory, next to the state directory, that records the end of the journal.
func (c Config) HeadDir() string {
	if c.StateDir == "" {
		return ""
	}
	return statedir.Head(c.StateDir)
}

type ownFile struct {
	what, path string
	at         scalar
}

func (l *loader) ownFiles(c *Config) []ownFile {
	files := []ownFile{
		{"the state directory", c.StateDir, l.scalar("state_dir")},
		{"the directory of the journal's head", c.HeadDir(), l.scalar("state_dir")},
		{"the configuration", c.File, scalar{}},
		{"toold's configuration folder", l.configDir, scalar{}},
		{"the socket", c.Socket, l.scalar("socket")},
		{"the key of the TLS certificate", c.TLS.Key, l.scalar("tls.key")},
		{"the TLS certificate", c.TLS.Cert, l.scalar("tls.cert")},
	}
	for _, path := range PolicyFiles(c.Policy) {
		files = append(files, ownFile{"the policy", path, l.scalar("policy")})
	}
	return files
}

// checkOwnFiles rejects files of the daemon in directories that calls may write. Symbolic links count too: whoever
// can write the directory can replace a link.
func (l *loader) checkOwnFiles(c *Config) {
	mounts := readMounts()
	reported := map[string]bool{} // roots: one reported file is enough for each
	for _, own := range l.ownFiles(c) {
		if own.path == "" {
			continue
		}
		canonical, links, err := paths.ResolveLinks(own.path)
		if err != nil {
			l.fail(own.at, "%s: %v", own.what, err)
			continue
		}
		for _, root := range slices.Concat([]string{c.Workspace}, c.Sandbox.Write, c.Escalation.Write) {
			if root != "" && !reported[root] {
				reported[root] = l.checkOwnFile(own, append(links, canonical), root, mounts)
			}
		}
	}
}

func (l *loader) checkOwnFile(own ownFile, places []string, root string, mounts []mount) (failed bool) {
	for _, place := range places {
		why := ""
		switch {
		case paths.Within(place, root):
			why = "lies inside"
		case paths.Within(root, place):
			l.failUnsafe(own.at, "%s lies inside %s %s, which is hidden from calls; choose another one (--state-dir)", root, own.what, place)
			return true
		case visibleThrough(mounts, root, place):
			why = "can be seen through a mount in"
		default:
			continue
		}
		l.failUnsafe(own.at, "%s %s %s %s, which calls may write: they could alter what binds them.\n"+
			"Work in a project folder: cd into one, or name it with -C; or keep it elsewhere (--state-dir, --config, --policy)", own.what, own.path, why, root)
		return true
	}
	return false
}

// mount is a line of mountinfo: the directory root of device is mounted at at.
type mount struct{ device, root, at string }

func visibleThrough(mounts []mount, root, path string) bool {
	device, place := deviceOf(mounts, path)
	if device == "" {
		return false
	}
	for _, m := range mounts {
		if paths.Within(m.at, root) && m.device == device && paths.Within(place, m.root) {
			return true
		}
	}
	// The root itself may be a bind mount.
	other, above := deviceOf(mounts, root)
	return other == device && paths.Within(place, above)
}

func otherPaths(mounts []mount, path string) (list []string) {
	device, place := deviceOf(mounts, path)
	for _, m := range mounts {
		at, shown := m.at, m.root
		switch {
		case device == "" || m.device != device:
			continue
		case paths.Within(place, m.root):
			at, shown = filepath.Join(m.at, strings.TrimPrefix(place, m.root)), place
		case !paths.Within(m.root, place):
			continue
		}
		// Another mount may cover this one.
		if d, p := deviceOf(mounts, at); !paths.Within(at, path) && d == device && p == shown {
			list = append(list, at)
		}
	}
	return list
}

func deviceOf(mounts []mount, path string) (device, place string) {
	best := -1
	for _, m := range mounts {
		if paths.Within(path, m.at) && len(m.at) >= best { // the last of several mounts covers the others
			best, device = len(m.at), m.device
			place = filepath.Join(m.root, strings.TrimPrefix(path, m.at))
		}
	}
	return device, place
}

// readMounts returns the mounts of this process (proc_pid_mountinfo(5)).
func readMounts() []mount {
	b, err := os.ReadFile("/proc/self/mountinfo")
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return parseMounts(string(b))
}

var unescapeMount = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)

func parseMounts(text string) []mount {
	var mounts []mount
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) > 5 {
			mounts = append(mounts, mount{f[2], unescapeMount.Replace(f[3]), unescapeMount.Replace(f[4])})
		}
	}
	return mounts
}
