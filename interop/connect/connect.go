// Package connect sets up agents that are installed on this machine so that they run their
// tool calls in toold, and takes that back.
//
// It knows which files an agent reads and which settings in them do it. It changes the text
// of these files and nothing else in them, keeps what they were, and proves a change with
// the agent's own program, a scripted model on loopback and a daemon of its own, before the
// change is made. It does not start the user's daemon, and asks no one.
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
	StateDir string   // where records and backups are kept
	Program  string   // toold, by its absolute path
	Flags    []string // of Program, with which it finds the daemon; usually none
	URL      string   // of the daemon, as ws://127.0.0.1:7717
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

// command is toold as an agent starts it, with the agent's token.
func (s Setup) command(agent string) []string {
	return append(append([]string{s.Program}, s.Flags...), "--token="+agent)
}

// File is a file that is to have some settings, or some content.
type File struct {
	Path    string
	Format  edit.Format
	Changes []edit.Change
	Content []byte      // of a file that is toold's alone; Format and Changes are not used
	Mode    fs.FileMode // of a file that does not exist
	// Secret: it contains the token. It is kept in the state directory, which no call can
	// read, and at Path there is a link to it.
	Secret bool
}

// Agent is a program that can be connected.
type Agent struct {
	Name  string // as people write it, and of its token
	Title string
	Notes []string // what else a person has to know, such as what connecting does not do

	programs []string // any of which is looked for on PATH
	paths    func(Setup) []string
	files    func(Setup) ([]File, error)
	prove    func(context.Context, *site) error
	partly   string               // what prove cannot show; "" = it runs the agent itself
	warn     func(Setup) []string // what in the user's own settings goes around the change; nil = nothing
}

// Found returns where an agent is installed: its program, else a directory with its
// configuration; "" when it is not.
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

// Warnings are what in the user's own settings may go around the change.
func (a Agent) Warnings(s Setup) []string {
	if a.warn == nil {
		return nil
	}
	return a.warn(s)
}

// Agents are all that connect knows.
func Agents() []Agent { return append([]Agent{codexAgent(), claudeAgent()}, clients()...) }

// Named is the agent of a name.
func Named(name string) (Agent, bool) {
	all := Agents()
	i := slices.IndexFunc(all, func(a Agent) bool { return a.Name == name })
	if i < 0 {
		return Agent{}, false
	}
	return all[i], true
}
