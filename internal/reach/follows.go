package reach

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"

	"github.com/toold/toold/client"
	"github.com/toold/toold/internal/config"
	"github.com/toold/toold/internal/console"
	"github.com/toold/toold/internal/loopback"
	"github.com/toold/toold/internal/paths"
	"github.com/toold/toold/internal/statedir"
)

// Follows returns the paths or names of the policy and the configuration file that a daemon of a configuration uses.
// It resolves the links of the policy, which may be the path of a file that does not exist yet. The daemon has read
// the configuration at its start.
func Follows(cfg config.Config) (policy, file string) {
	return cmp.Or(cfg.Policy, cfg.PolicyPlace, cfg.PolicyName()), cmp.Or(canonical(cfg.File), "none")
}

// called returns the name of the policy for a path where there may be no file yet.
func called(path string) string {
	if _, err := os.Stat(path); filepath.IsAbs(path) && errors.Is(err, fs.ErrNotExist) {
		return config.Config{}.PolicyName()
	}
	return path
}

// canonical returns a path without links, or the name unchanged.
func canonical(path string) string {
	if at, err := paths.Resolve(path); err == nil {
		return at
	}
	return path
}

// ForCalls is Endpoint for making calls. It returns an error if the daemon uses another policy or configuration file
// than the one that the user named. A daemon of an older version, or of another state directory, does not report what
// it uses.
func (d Daemon) ForCalls() (at client.Options, err error) {
	if at, err = d.Endpoint(); err != nil {
		return at, err
	}
	running, _, err := statedir.Running(d.Config.StateDir)
	if err != nil {
		return at, err
	}
	policy, file := Follows(d.Config)
	is := ""
	switch names := d.Config.NamesPolicy || d.Config.NamesFile; {
	case names && d.Named && !isAt(running, at.URL):
		return at, console.Exit(console.ExitConfig, fmt.Errorf("cannot tell which policy and configuration the daemon at %s follows: it is not the one of the state directory %s. Name its own with --state-dir, or leave out --policy and --config", at.URL, d.Config.StateDir))
	case d.Config.NamesPolicy && canonical(policy) != canonical(running.Policy):
		is = "the policy " + cmp.Or(called(running.Policy), "that it does not name, since it is of an older version") + ", not " + policy
	case d.Config.NamesFile && file != running.File:
		is = "the configuration " + cmp.Or(running.File, "that it does not name, since it is of an older version") + ", not " + file
	default:
		return at, nil
	}
	return at, console.Exit(console.ExitConfig, fmt.Errorf("the daemon at %s follows %s: `toold call --private` runs one call under yours; or end the daemon first with `toold down`", at.URL, is))
}

func isAt(d statedir.Daemon, address string) bool {
	own, err := reachable(d.URL)
	named, wrong := url.Parse(address)
	return err == nil && wrong == nil && loopback.Same(own.Host, named.Host)
}

// OtherVersion returns a sentence for the user if the running daemon of the state directory has another version than
// this program, otherwise "".
func (d Daemon) OtherVersion() string {
	running, ok, err := statedir.Running(d.Config.StateDir)
	isSame := d.Named || running.Version == d.Version
	if !ok || err != nil || isSame {
		return ""
	}
	return fmt.Sprintf("the running daemon is toold %s, and this is toold %s; replace it: toold down && toold up", cmp.Or(running.Version, "of an unknown version"), d.Version)
}

// OtherPolicy returns a sentence for the user if the running daemon uses another policy than the configuration,
// otherwise "".
func (d Daemon) OtherPolicy() string {
	running, ok, err := statedir.Running(d.Config.StateDir)
	policy, _ := Follows(d.Config)
	if !ok || err != nil || canonical(running.Policy) == canonical(policy) {
		return ""
	}
	return fmt.Sprintf("this is about the policy %s; the running daemon follows %s", d.Config.PolicyName(), cmp.Or(called(running.Policy), "one that it does not name"))
}
