package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/sandbox/escalation"
)

// Config is the complete, checked configuration of a daemon. Every path in it
// is absolute. config.example.yaml explains each setting and shows its default.
type Config struct {
	File           string // the file that was read; empty when there is none
	Text           []byte // what it held
	Listen         string // host:port; without TLS the host is a loopback one
	Socket         string // path of a Unix socket; empty = none
	TLS            TLS
	Workspace      string // canonical; an existing directory, never "/"
	StateDir       string // canonical as far as it exists; never in a place that calls may write
	Policy         string // the policy file; empty = the built-in policy
	AllowedHosts   []string
	AllowedOrigins []string
	Tokens         []Token
	ApprovalTime   time.Duration // how long a person may take to answer
	Sandbox        sandbox.Profile
	Lowest         sandbox.Tier // that will do where the machine does not give all
	Protect        []string     // names that calls cannot make or change; see policy.Autorun
	ProtectReport  bool         // what appears under them stays, and is reported
	Limits         Limits
	Env            Env
	Terminal       string   // "split", "single" or "off": what a command gets unless it asks
	WarmShells     int64    // that wait for the next commands
	Redact         []string // texts that are never shown nor kept
	LogLevel       string   // "debug", "info", "warn" or "error"
	Traces         string   // where traces are sent, an OTLP/HTTP URL with its path; empty = nowhere
	Store          string   // the connection string of the team store; empty = none
	Warnings       []string // for the person who starts the daemon: allowed, but worth a thought

	Escalation escalation.Limits // what an approver may add to the sandbox of one call
	Egress     Egress
	Caches     []sandbox.Cache // of tools: calls see and may change them, the directories themselves stay unchanged
}

// TLS names the files of the server's certificate. Both are set or none is.
type TLS struct{ Cert, Key string }

// Token is one kind of client and what it may do.
type Token struct {
	Name  string   // the token's file is named after it
	Roles []string // of "agent", "approver", "observer", "admin"; never empty
}

// Env is what commands see of the daemon's environment.
type Env struct {
	Pass []string          // names, or prefixes that end in "*", beyond the harmless ones
	Set  map[string]string // wins over what is passed
}

// Limits bound what clients and calls may use. Sizes are bytes. The tag is names the
// default, the least and the most; 0 for the most is none.
type Limits struct {
	MaxFrameBytes      int64         `yaml:"max_frame_bytes" is:"16MiB 1KiB 1GiB"`      // of one incoming frame; a larger one ends the connection
	OutboxBytes        int64         `yaml:"outbox_bytes" is:"4MiB 64KiB 1GiB"`         // unsent live output kept for a connection
	ReturnBytes        int64         `yaml:"return_bytes" is:"30000B 1000B 64MiB"`      // of each stream in a return
	SpoolBytes         int64         `yaml:"spool_bytes" is:"64MiB 0B 0B"`              // output of a call kept on disk
	StateBytes         int64         `yaml:"state_bytes" is:"16GiB 64MiB 0B"`           // of all that is kept: journal, output, quarantine, caches; the oldest goes first
	RecordKeep         time.Duration `yaml:"record_keep" is:"87600h 0 87600h"`          // how long a part of the journal is kept after its end
	SpoolKeep          time.Duration `yaml:"spool_keep" is:"168h 0 87600h"`             // how long output is kept
	QuarantineKeep     time.Duration `yaml:"quarantine_keep" is:"720h 0 87600h"`        // how long is kept what was taken away
	CachesKeep         time.Duration `yaml:"caches_keep" is:"720h 0 87600h"`            // how long the changes of a workspace's calls to tool caches are kept after their last use
	Linger             time.Duration `yaml:"linger" is:"60s 0 24h"`                     // how long a call outlives its connection; 0 = not at all
	ConcurrentCalls    int64         `yaml:"concurrent_calls" is:"64 1 10000"`          // running at the same time
	WaitingCalls       int64         `yaml:"waiting_calls" is:"1024 1 1000000"`         // of all connections: received, not yet running
	CallsPerConnection int64         `yaml:"calls_per_connection" is:"256 1 1000000"`   // not yet answered
	ConcurrentPerConn  int64         `yaml:"concurrent_per_connection" is:"32 1 10000"` // of ConcurrentCalls; further ones wait
	BackgroundCalls    int64         `yaml:"background_calls" is:"16 0 10000"`          // running on after their return; 0 = none
	BackgroundPerConn  int64         `yaml:"background_per_connection" is:"8 1 10000"`  // of BackgroundCalls; more are refused
	BackgroundTimeout  time.Duration `yaml:"background_timeout" is:"8h 1s 720h"`        // the longest life of one
	AskedHosts         int64         `yaml:"asked_hosts" is:"32 0 4096"`                // that one running call may put before a person
	Connections        int64         `yaml:"connections" is:"1024 1 1000000"`           // of all clients
	IncomingBytes      int64         `yaml:"incoming_bytes" is:"256MiB 1MiB 1TiB"`      // of frames that are being received, over all connections
	Timeout            time.Duration `yaml:"timeout" is:"120s 1ms 168h"`                // of a call that names none; at most MaxTimeout
	MaxTimeout         time.Duration `yaml:"max_timeout" is:"600s 1s 168h"`             // that a call may name
	Grace              time.Duration `yaml:"grace" is:"2s 0 1m"`                        // between TERM and KILL
	Ping               time.Duration `yaml:"ping" is:"30s 10ms 1h"`                     // between pings of a connection
	Idle               time.Duration `yaml:"idle" is:"90s 10ms 24h"`                    // silence after which a connection is closed
}

// Options says where Load looks. The zero value reads the default file and the
// process's environment.
type Options struct {
	Path string // the configuration file; empty = TOOLD_CONFIG, then the default file, which may be missing
	Text []byte // content of the file; nil = it is read

	// The command line's word on single settings; empty = not given. Relative
	// paths count from Dir.
	Listen, Workspace, Policy, StateDir, LogLevel string

	For Purpose // what the configuration is read for

	// Discover returns the workspace for the current directory, if no setting names one; nil = that
	// directory. Both paths are canonical.
	Discover func(stateDir, dir string) (string, error)

	Dir    string              // empty = the working directory
	Getenv func(string) string // nil = os.Getenv
}

// Load reads and checks the configuration. The command line wins over the environment
// (TOOLD_LISTEN, TOOLD_WORKSPACE, TOOLD_POLICY, TOOLD_STATE_DIR, TOOLD_LOG_LEVEL), that over the
// file, that over the default. Relative paths in the file count from its directory. All faults
// are reported at once; those of the file are *Error. The Config must not be used then.
func Load(o Options) (Config, error) {
	l, err := newLoader(o)
	if err != nil {
		return Config{}, err
	}
	raw, err := l.read(o.Path, o.Text)
	if err != nil {
		return Config{}, err
	}
	l.override(&raw, o)
	c := l.build(raw)
	if err := errors.Join(l.faults...); err != nil {
		return Config{}, err
	}
	return c, nil
}

// loader carries what every check needs, and collects the faults.
type loader struct {
	getenv    func(string) string
	dir       string // relative paths of the command line and the environment count from here
	home      string // empty when unknown
	file      string // the configuration file; empty when there is none
	src       []byte
	faults    []error
	warnings  []string
	configDir string // $XDG_CONFIG_HOME/toold; empty when unknown
	purpose   Purpose
	discover  func(stateDir, dir string) (string, error)
}

func newLoader(o Options) (*loader, error) {
	l := &loader{getenv: o.Getenv, dir: o.Dir, purpose: o.For, discover: o.Discover}
	if l.getenv == nil {
		l.getenv = os.Getenv
	}
	if l.dir == "" {
		dir, err := os.Getwd()
		if err != nil {
			return nil, fmt.Errorf("cannot tell the working directory: %w", err)
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

// xdg returns a base directory (XDG), "" if unknown. A relative path in the variable is ignored.
func (l *loader) xdg(name, below string) string {
	if dir := l.getenv(name); filepath.IsAbs(dir) {
		return filepath.Clean(dir)
	}
	if l.home == "" {
		return ""
	}
	return filepath.Join(l.home, below)
}

// read decodes the configuration file. Only the default file may be missing.
func (l *loader) read(path string, src []byte) (file, error) {
	var raw file
	if path == "" {
		path = l.getenv("TOOLD_CONFIG")
	}
	named := path != ""
	switch {
	case named && !filepath.IsAbs(path):
		path = filepath.Join(l.dir, path)
	case !named && l.configDir == "":
		return raw, nil
	case !named:
		path = filepath.Join(l.configDir, "config.yaml")
	}
	if src == nil {
		var err error
		if src, err = os.ReadFile(path); errors.Is(err, fs.ErrNotExist) && !named {
			return raw, nil
		}
		if err != nil {
			return raw, fmt.Errorf("cannot read the configuration: %w", err)
		}
	}
	l.file, l.src = path, src
	return raw, decodeStrict(path, src, &raw)
}

func (l *loader) override(raw *file, o Options) {
	for _, s := range []struct {
		dst             *scalar
		name, flag, arg string
	}{
		{&raw.Listen, "TOOLD_LISTEN", "--listen", o.Listen},
		{&raw.Workspace, "TOOLD_WORKSPACE", "--workspace", o.Workspace},
		{&raw.Policy, "TOOLD_POLICY", "--policy", o.Policy},
		{&raw.StateDir, "TOOLD_STATE_DIR", "--state-dir", o.StateDir},
		{&raw.Log.Level, "TOOLD_LOG_LEVEL", "--log-level", o.LogLevel},
	} {
		if v := l.getenv(s.name); v != "" {
			*s.dst = scalar{text: v, set: true, origin: s.name}
		}
		if s.arg != "" {
			*s.dst = scalar{text: s.arg, set: true, origin: s.flag}
		}
	}
}
