package policy

import "time"

// File is one layer of policy as its author wrote it, before it is compiled. The zero value allows nothing.
type File struct {
	Name     string // path of the file, for Decision.Source
	Title    string // what the file calls itself
	Headless bool   // no one can be asked: what would be asked is denied
	FoldCase bool   // paths that differ only in case are one path
	// AutoCase leaves FoldCase to whoever can look at the workspace. Compile goes by FoldCase alone.
	AutoCase bool
	Defaults Defaults
	Presets  []string // of built-in command knowledge: "shell-readonly", "shell-workspace"
	Env      []string // patterns of variables that may be set for a command
	Commands []Rule
	Paths    []Rule
	Net      []Rule
	Disable  []string // ids of built-in rules that are switched off
	Clients  []Client // further files, each for the calls of some clients

	// AskTimeout is how long a person has to answer; 0 = as configured. Of several files the shortest counts.
	AskTimeout time.Duration
	// OncePer is "conversation" when a yes counts for the same question in the whole conversation. Only the user's file says so.
	OncePer string
	// Lines of the defaults that the file itself names, by their keys, such as "defaults.bash". Only these are worth a warning
	// when they have no effect.
	Lines map[string]int
}

// Defaults decide effects that no rule matches. The zero value denies.
type Defaults struct {
	Bash, Read, Write, Net Action
	Unanalysable           Action // Opaque effects; Allow is refused
	UnknownRead            Action // paths that exist only at run time
	UnknownWrite           Action
	UnknownEnv             Action // variables that no list knows
	// Confined is what programs, code given to them, paths that exist only at run time and variables get at least while a sandbox
	// bounds the call; see Confinement. Deny changes nothing.
	Confined Action
}

// Rule is one rule of a file. Which fields apply depends on the list it is in. The order of rules has no meaning.
type Rule struct {
	ID     string
	Action Action
	Reason string
	Line   int // in the file; 0 = unknown
	Except []string
	// Always makes a person answer each time: no earlier answer counts for a call that an asking rule with it matches. For asking
	// rules only.
	Always bool

	// Commands.
	Classes     []string // of commands, as their specifications say: "destructive", "outgoing"; for asking and denying rules
	Run         []string // command patterns: tokens by google/shlex, with {a,b}, * and **
	PermitFlags []string // unsafe flags that an allowing rule wants to cover
	ForbidFlags []string // flags that an allowing rule does not cover
	// RequireFlags are flags, with their values, that a command must have for an allowing rule to cover it: "-n dev". Patterns
	// leave them out; they may stand anywhere.
	RequireFlags []string
	Dirs         []string // patterns of the working directory; empty = any
	// Profile names the strictest sandbox that one of the rules that match a call wants for it: "read-only", "workspace-write",
	// or "" for the one that is configured. It cannot loosen that one.
	Profile  string
	Match    []string // examples the rule must match, checked by Compile
	NotMatch []string // examples the rule must not match, checked by Compile

	// Paths.
	Ops   []Kind   // Read, Write; empty = both
	Paths []string // globs of absolute paths, with ${workspace}, ${home} and ${tmp}
	// NoMask keeps Blocks from it: some programs do write there, and do not say so.
	NoMask bool

	// Net.
	Hosts   []string // names, addresses, or "*.example.org"
	Ports   []int    // empty = any
	Schemes []string // empty = any
	Methods []string // empty = any
}

// Options are the facts about this machine that a policy refers to.
type Options struct {
	Workspace, Home, Tmp string   // values of the placeholders; absolute, canonical
	Protected            []string // the daemon's own files and directories
	// Administrator is the file of this machine's administrator, nil when there is none. Its rules hold beside the user's, and no
	// default of the user's is more permissive than its own.
	Administrator *File
	// Resolve returns a path with its symbolic links resolved as far as it exists. The literal beginnings of path patterns go
	// through it. Nil leaves them as they are.
	Resolve func(path string) string
}
