// Package connect configures installed agents to run their tool calls in toold, and undoes that.
//
// It changes only settings that it knows, and keeps the originals. It first proves a change with the agent's program,
// a scripted model on loopback and a private daemon. It does not start the user's daemon, and does not ask the user.
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

// Setup describes the daemon that agents are connected to.
type Setup struct {
	Home     string
	Getenv   func(string) string
	StateDir string   // for records and backups
	Program  string   // absolute path of toold
	Flags    []string // of Program, to select the daemon
	URL      string   // of the daemon, such as ws://127.0.0.1:7717
	Token    string   // of the agent
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

func (s Setup) command(agent string) []string {
	return append(append([]string{s.Program}, s.Flags...), "--token="+agent)
}

// File is a file with the settings or content that connect requires.
type File struct {
	Path    string
	Format  edit.Format
	Changes []edit.Change
	Content []byte      // instead of Format and Changes
	Mode    fs.FileMode // of a newly created file
	// Secret files contain the token. They are in the state directory, which calls cannot read; Path links to them.
	Secret bool
}

// Agent is a program that can be connected.
type Agent struct {
	Name  string // also the name of its token
	Title string
	Notes []string // limitations, for people

	programs []string           // names; the first one on PATH counts
	dir      func(Setup) string // its configuration directory
	files    func(Setup) ([]File, error)
	prove    func(context.Context, *site) error
	partly   string               // what prove cannot show; "" if it runs the agent itself
	trial    func() trial         // proves an installed agent with the agent itself; may be nil
	warn     func(Setup) []string // lists settings that bypass the change; may be nil
}

// Found returns the path of an agent's program or, if there is none, of its configuration directory, or "".
func (a Agent) Found(s Setup) string {
	if program := a.program(); program != "" {
		return program
	}
	if info, err := os.Stat(a.dir(s)); err == nil && info.IsDir() {
		return a.dir(s)
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

// Warnings lists settings of the user that may bypass the change or keep the agent from running anything.
func (a Agent) Warnings(s Setup) (list []string) {
	if a.warn != nil {
		list = a.warn(s)
	}
	return append(list, a.DeadHooks(s)...)
}

// Agents returns all supported agents.
func Agents() []Agent { return append([]Agent{codexAgent(), claudeAgent()}, clients()...) }

// Named returns the agent with a name, and whether there is one.
func Named(name string) (Agent, bool) {
	all := Agents()
	i := slices.IndexFunc(all, func(a Agent) bool { return a.Name == name })
	if i < 0 {
		return Agent{}, false
	}
	return all[i], true
}
