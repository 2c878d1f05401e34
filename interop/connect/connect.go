// Package connect sets up installed agents so that they run their tool calls in
// toold, and undoes that.
//
// It knows the agents' configuration files and settings. It changes only these
// settings, keeps the originals, and before a change proves it with the agent's own
// program, a scripted model on loopback and a private daemon. It does not start the
// user's daemon, and asks no questions.
package connect

import (
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/toold/toold/internal/edit"
)

// Setup is what agents are connected to.
type Setup struct {
	Home     string
	Getenv   func(string) string
	StateDir string   // directory of records and backups
	Program  string   // absolute path of toold
	Flags    []string // of Program, for finding the daemon; usually none
	URL      string   // of the daemon, such as ws://127.0.0.1:7717
	Token    string   // the agent's
}

func (s Setup) config(elements ...string) string {
	base := s.Getenv("XDG_CONFIG_HOME")
	if !filepath.IsAbs(base) {
		base = filepath.Join(s.Home, ".config")
	}
	return filepath.Join(append([]string{base}, elements...)...)
}

func (s Setup) directory(variable, otherwise string) string {
	if dir := s.Getenv(variable); dir != "" {
		return dir
	}
	return filepath.Join(s.Home, otherwise)
}

// command returns toold's command line for an agent, with the agent's token.
func (s Setup) command(agent string) []string {
	return append(append([]string{s.Program}, s.Flags...), "--token="+agent)
}

// File is a file with the required settings, or the required content.
type File struct {
	Path    string
	Format  edit.Format
	Changes []edit.Change
	Content []byte      // of a file that only toold uses, without Format and Changes
	Mode    fs.FileMode // of a new file
	// Secret: it contains the token. It is stored in the state directory, which no call
	// can read, and Path is a link to it.
	Secret bool
}

// Agent is a program that can be connected.
type Agent struct {
	Name  string // as people write it; also that of its token
	Title string
	Notes []string // what else a person should know, such as limits of connecting

	programs []string // searched on PATH; any is enough
	paths    func(Setup) []string
	files    func(Setup) ([]File, error)
	prove    func(context.Context, *site) error
	partly   string               // what prove cannot show; "": it runs the agent itself
	warn     func(Setup) []string // which of the user's own settings bypass the change; may be nil
}

// Found returns where an agent is installed: its program, else its configuration
// directory, or "".
func (a Agent) Found(s Setup) string {
	if program := a.program(); program != "" {
		return program
	}
	for _, dir := range a.paths(s) {
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			return dir
		}
	}
	return ""
}

func (a Agent) program() string {
	for _, name := range a.programs {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// Warnings lists the user's own settings that may bypass the change.
func (a Agent) Warnings(s Setup) []string {
	if a.warn == nil {
		return nil
	}
	return a.warn(s)
}

// Agents returns all supported agents.
func Agents() []Agent { return append([]Agent{codexAgent(), claudeAgent()}, clients()...) }

// Named returns the agent with a name.
func Named(name string) (Agent, bool) {
	all := Agents()
	i := slices.IndexFunc(all, func(a Agent) bool { return a.Name == name })
	if i < 0 {
		return Agent{}, false
	}
	return all[i], true
}
