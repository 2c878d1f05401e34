package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/sandbox/caches"
	"github.com/toold/toold/sandbox/escalation"
)

// Config is the complete, checked configuration of a daemon. Every path is absolute. The table of settings documents
// the fields.
type Config struct {
	File           string // "" = none
	NamesFile      bool   // File was named by a flag or a variable
	Text           []byte // contents of File
	Listen         string // host:port; a loopback host unless TLS is set
	Socket         string // path of a Unix socket; "" = none
	TLS            TLS
	Workspace      string // canonical; an existing directory, never "/"; "" with ReachDaemon
	StateDir       string // canonical as far as it exists; for RunCalls never where calls may write
	Policy         string // "" = the built-in policy
	PolicyPlace    string // path where a policy file would replace the built-in policy; "" = unknown, or Policy is set
	NamesPolicy    bool   // Policy was named by a flag or a variable
	AllowedHosts   []string
	AllowedOrigins []string
	Tokens         []Token
	ApprovalTime   time.Duration
	Sandbox        sandbox.Profile
	Lowest         sandbox.Tier
	Protect        []string // see policy.Autorun
	ProtectReport  bool     // report new files under protected names instead of removing them
	Limits         Limits
	Env            Env
	Terminal       string
	WarmShells     int64
	Redact         []string
	LogLevel       string
	Traces         string   // OTLP/HTTP URL including its path; "" = none
	Store          string   // connection string of the team store; "" = none
	Warnings       []string // accepted settings that may be mistakes

	Escalation escalation.Limits // what an approver may add to the sandbox of one call
	Egress     Egress
	Caches     []caches.Cache
}

// TLS names the certificate and key files of the server: both or none.
type TLS struct{ Cert, Key string }

// Token is the token of a kind of client.
type Token struct {
	Name  string   // also the name of the token's file
	Roles []string // of "agent", "approver", "observer", "admin"; never empty
}

// Env selects what commands see of the daemon's environment.
type Env struct {
	Pass []string
	Set  map[string]string // overrides Pass
}

// Limits are the settings under limits. Sizes are in bytes.
type Limits struct {
	MaxFrameBytes, OutboxBytes, ReturnBytes, SpoolBytes, StateBytes int64

	RecordKeep, SpoolKeep, QuarantineKeep, CachesKeep, Linger time.Duration

	ConcurrentCalls, WaitingCalls, CallsPerConnection, ConcurrentPerConn int64
	BackgroundCalls, BackgroundPerConn, AskedHosts                       int64
	Connections, IncomingBytes                                           int64

	BackgroundTimeout, Timeout, MaxTimeout, Grace, Ping, Idle time.Duration
}

// Options configure Load. The zero value reads the default file and the environment.
type Options struct {
	Path string // "" = TOOLD_CONFIG, else the default file, which may be missing
	Text []byte // contents of the file; nil = Load reads it

	// Flags; "" = not given. Relative paths start at Dir.
	Listen, Workspace, Policy, StateDir, LogLevel string

	For Purpose

	// Discover returns the workspace for a directory if no setting names one; nil = the directory. Paths are
	// canonical.
	Discover func(stateDir, dir string) (string, error)

	Dir    string              // empty = the working directory
	Getenv func(string) string // nil = os.Getenv
}

// Load reads and checks the configuration. Flags override TOOLD_ variables, which override the file. Relative paths
// in the file are relative to its directory. The error joins all faults; faults in the file have type *Error.
func Load(o Options) (Config, error) {
	l, err := newLoader(o)
	if err == nil {
		err = l.read(o.Path, o.Text)
	}
	if err != nil {
		return Config{}, err
	}
	l.override(o)
	c := l.build()
	if len(l.faults) > 0 {
		slices.SortStableFunc(l.faults, byPlace)
		return Config{}, errors.Join(l.faults...)
	}
	return c, nil
}

type loader struct {
	getenv    func(string) string
	dir       string // base of relative paths in flags and the environment
	home      string // "" = unknown
	file      string // "" = none
	named     bool   // file
	src       []byte
	raw       map[string]any // decoded values by key; see setting.target
	faults    []error
	warnings  []string
	configDir string // $XDG_CONFIG_HOME/toold; "" = unknown
	purpose   Purpose
	discover  func(stateDir, dir string) (string, error)
	resolved  map[string]string // see canonical
}

func newLoader(o Options) (*loader, error) {
	l := &loader{getenv: o.Getenv, dir: o.Dir, purpose: o.For, discover: o.Discover, raw: map[string]any{}, resolved: map[string]string{}}
	for _, s := range settings {
		l.raw[s.key] = s.target()
	}
	if l.getenv == nil {
		l.getenv = os.Getenv
	}
	if l.dir == "" {
		dir, err := os.Getwd()
		if err != nil {
			return nil, fmt.Errorf("the working directory is gone or cannot be read (%w); change to another", err)
		}
		l.dir = dir
	}
	if home := l.getenv("HOME"); filepath.IsAbs(home) {
		l.home = filepath.Clean(home)
	}
	if base := l.xdg("XDG_CONFIG_HOME", ".config"); base != "" {
		l.configDir = filepath.Join(base, "toold")
	}
	return l, nil
}

// xdg returns an XDG base directory, or "" if it is unknown. It ignores a relative path in the variable, as the XDG
// specification requires.
func (l *loader) xdg(name, below string) string {
	if dir := l.getenv(name); filepath.IsAbs(dir) {
		return filepath.Clean(dir)
	}
	if l.home == "" {
		return ""
	}
	return filepath.Join(l.home, below)
}

func (l *loader) read(path string, src []byte) error {
	if path == "" {
		path = l.getenv("TOOLD_CONFIG")
	}
	named := path != ""
	l.named = named
	switch {
	case named && !filepath.IsAbs(path):
		path = filepath.Join(l.dir, path)
	case !named && l.configDir == "":
		return nil
	case !named:
		path = filepath.Join(l.configDir, "config.yaml")
	}
	if src == nil {
		var err error
		if src, err = os.ReadFile(path); errors.Is(err, fs.ErrNotExist) && !named {
			return nil
		}
		if err != nil {
			return fmt.Errorf("cannot read the configuration: %w", err)
		}
	}
	return l.decode(path, src)
}

func (l *loader) decode(file string, src []byte) error {
	l.file, l.src = file, src
	d := decoder{file: file, lines: linesOf(src)}
	root, err := d.parse(src)
	if err != nil || root == nil {
		return err
	}
	d.note(d.settings(root, "", l.raw))
	l.faults = append(l.faults, flat(d.failed())...) // the other settings are checked, too
	return nil
}

func (l *loader) override(o Options) {
	for _, s := range []struct{ key, name, flag, arg string }{
		{"listen", "TOOLD_LISTEN", "--listen", o.Listen},
		{"workspace", "TOOLD_WORKSPACE", "--workspace", o.Workspace},
		{"policy", "TOOLD_POLICY", "--policy", o.Policy},
		{"state_dir", "TOOLD_STATE_DIR", "--state-dir", o.StateDir},
		{"log.level", "TOOLD_LOG_LEVEL", "--log-level", o.LogLevel},
	} {
		if v := l.getenv(s.name); v != "" {
			l.raw[s.key] = &scalar{text: v, set: true, origin: s.name}
		}
		if s.arg != "" {
			l.raw[s.key] = &scalar{text: s.arg, set: true, origin: s.flag}
		}
	}
}

// Purpose decides whether settings that make running calls unsafe are faults.
type Purpose int

// The purposes.
const (
	RunCalls    Purpose = iota // they are faults
	JudgeCalls                 // nothing runs: they are warnings
	ReachDaemon                // they are ignored, and Config has no workspace
)

// failUnsafe reports, according to the purpose, a setting that makes running calls unsafe.
func (l *loader) failUnsafe(at scalar, format string, args ...any) {
	switch l.purpose {
	case ReachDaemon:
	case JudgeCalls:
		l.warn("no call could run so: "+format, args...)
	default:
		l.fail(at, format, args...)
	}
}
