package config

import (
	"reflect"
)

// file is the shape of the configuration file. Values are texts with positions until they are checked.
type file struct {
	Version scalar `yaml:"version"`
	Listen  scalar `yaml:"listen"`
	Socket  scalar `yaml:"socket"`
	TLS     struct {
		Cert scalar `yaml:"cert"`
		Key  scalar `yaml:"key"`
	} `yaml:"tls"`
	Workspace      scalar   `yaml:"workspace"`
	StateDir       scalar   `yaml:"state_dir"`
	Policy         scalar   `yaml:"policy"`
	AllowedHosts   []scalar `yaml:"allowed_hosts"`
	AllowedOrigins []scalar `yaml:"allowed_origins"`
	Tokens         []struct {
		Name  scalar   `yaml:"name"`
		Roles []scalar `yaml:"roles"`
	} `yaml:"tokens"`
	Approval struct {
		Timeout scalar `yaml:"timeout"`
		Widen   struct {
			Profile scalar   `yaml:"profile"`
			Network scalar   `yaml:"network"`
			Hosts   []scalar `yaml:"hosts"`
			Write   []scalar `yaml:"write"`
		} `yaml:"widen"`
	} `yaml:"approval"`
	Sandbox struct {
		Profile        scalar   `yaml:"profile"`
		FullAccess     scalar   `yaml:"i_understand_full_access"`
		Network        scalar   `yaml:"network"`
		Write          []scalar `yaml:"write"`
		Read           []scalar `yaml:"read"`
		Hide           []scalar `yaml:"hide"`
		Launcher       scalar   `yaml:"launcher"`
		AllowDegraded  scalar   `yaml:"allow_degraded"`
		Protect        []scalar `yaml:"protect"`
		ProtectMissing scalar   `yaml:"protect_missing"`
		UnixSockets    []scalar `yaml:"unix_sockets"`
		Limits         struct {
			Processes   scalar `yaml:"processes"`
			OpenFiles   scalar `yaml:"open_files"`
			FileBytes   scalar `yaml:"file_bytes"`
			MemoryBytes scalar `yaml:"memory_bytes"`
			TmpBytes    scalar `yaml:"tmp_bytes"`
		} `yaml:"limits"`
		Caches []scalar `yaml:"caches"`
		Egress struct {
			Allow   []scalar `yaml:"allow"`
			Private []scalar `yaml:"private"`
			Ports   []scalar `yaml:"ports"`
			SNI     scalar   `yaml:"sni_check"`
		} `yaml:"egress"`
	} `yaml:"sandbox"`
	Limits limits `yaml:"limits"`
	Env    struct {
		Pass []scalar          `yaml:"pass"`
		Set  map[string]scalar `yaml:"set"`
	} `yaml:"env"`
	Terminal   scalar   `yaml:"terminal"`
	WarmShells scalar   `yaml:"warm_shells"`
	Redact     []scalar `yaml:"redact"`
	Log        struct {
		Level scalar `yaml:"level"`
	} `yaml:"log"`
	Audit struct {
		Store scalar `yaml:"store"`
	} `yaml:"audit"`
	Telemetry struct {
		Endpoint scalar `yaml:"otlp_endpoint"`
	} `yaml:"telemetry"`
}

// limits are the settings of Limits, by their names in the file.
type limits map[string]scalar

func (limits) keys() (names []string) {
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Limits]()) {
		names = append(names, f.Tag.Get("yaml"))
	}
	return names
}

// scalar is a single value and the place where it was written.
type scalar struct {
	At     place // in the file
	text   string
	set    bool   // written at all
	origin string // a flag or a variable, when it is not from the file
}

// UnmarshalText takes any text: what a setting may be is checked later, where
// its name and the other settings are known.
func (s *scalar) UnmarshalText(text []byte) error {
	s.text, s.set = string(text), true
	return nil
}

// Purpose is what a configuration is read for. It decides what becomes of findings
// that would make running calls unsafe, such as a state directory that they could
// write.
type Purpose int

// The purposes.
const (
	RunCalls    Purpose = iota // by a daemon: they are faults
	JudgeCalls                 // nothing runs: they are warnings
	ReachDaemon                // whose calls have a workspace of its own: none is looked at, and Config has none
)

// unsafe reports what would make running calls unsafe.
func (l *loader) unsafe(at scalar, format string, args ...any) {
	switch l.purpose {
	case ReachDaemon:
	case JudgeCalls:
		l.warn("no call could run so: "+format, args...)
	default:
		l.fail(at, format, args...)
	}
}
