package policy

import "time"

// File is one layer of policy before it is compiled. The zero value allows nothing.
type File struct {
	Name     string // path of the file, for Decision.Source
	Title    string // the file's own title
	Headless bool   // no one can be asked: what would be asked is denied
	FoldCase bool   // paths that differ only in case are equal
	// AutoCase lets a caller that can inspect the workspace set FoldCase. Compile only uses FoldCase.
	AutoCase bool
	Defaults Defaults
	Presets  []string // of built-in command knowledge: "shell-readonly", "shell-workspace"
	Env      []string // patterns of variables that may be set for a command
	Commands []Rule
	Paths    []Rule
	Net      []Rule
	Disable  []string // ids of disabled built-in rules
	Clients  []Client // further files, each for the calls of some clients

	// AskTimeout is how long a person has to answer; 0: as configured. The shortest of all files applies.
	AskTimeout time.Duration
	// OncePer is "conversation" if a yes applies to the same question in the whole conversation. Only the user's file can set it.
	OncePer string
	// Lines of the defaults that the file sets, by their keys, such as "defaults.bash". Only these cause a warning if they have no effect.
	Lines map[string]int
}

// Defaults decide effects that no rule matches. The zero value denies.
type Defaults struct {
	Bash, Read, Write, Net Action
	Unanalysable           Action // Opaque effects; Allow is rejected
	UnknownRead            Action // paths that exist only at run time
	UnknownWrite           Action
	UnknownEnv             Action // unlisted variables
	// Confined is the minimum for programs, code passed to them, paths that exist only at run time and variables while a sandbox bounds the
	// call; see Confinement. Deny changes nothing.
	Confined Action
}

// Rule is one rule of a file. Which fields apply depends on its list. The order of rules does not matter.
type Rule struct {
	ID     string
	Action Action
	Reason string
	Line   int // in the file; 0: unknown
	Except []string
	// Always requires a person's answer each time: no earlier answer applies to a call that matches. For ask rules only.
	Always bool

	// Commands.
	Classes     []string // of commands, from their specifications: "destructive", "outgoing"; for ask and deny rules
	Run         []string // command patterns: tokens by google/shlex, with {a,b}, * and **
	PermitFlags []string // unsafe flags that an allow rule covers
	ForbidFlags []string // flags that an allow rule does not cover
	// RequireFlags are flags, with their values, that a command must have for an allow rule to cover it: "-n dev". Patterns omit them; they
	// may be anywhere.
	RequireFlags []string
	Dirs         []string // patterns of the working directory; empty = any
	// Profile is the sandbox that the rule requires for a matching call; the strictest of all matching rules applies: "read-only",
	// "workspace-write", or "" for the configured one. It cannot loosen that one.
	Profile  string
	Match    []string // examples the rule must match, checked by Compile
	NotMatch []string // examples the rule must not match, checked by Compile

	// Paths.
	Ops   []Kind   // Read, Write; empty = both
	Paths []string // globs of absolute paths, with ${workspace}, ${home} and ${tmp}
	// NoMask excludes the rule from Blocks: some programs write there without saying so.
	NoMask bool

	// Net.
	Hosts   []string // names, addresses, or "*.example.org"
	Ports   []int    // empty = any
	Schemes []string // empty = any
	Methods []string // empty = any
}

// Options are facts about this machine that a policy refers to.
type Options struct {
	Workspace, Home, Tmp string   // values of the placeholders; absolute, canonical
	Protected            []string // the daemon's own files and directories
	// Administrator is the administrator's file, or nil. Its rules apply besides the user's, and no default of the user's is more
	// permissive than its own.
	Administrator *File
	// Resolve returns a path with its symbolic links resolved as far as it exists, for the literal prefixes of path patterns. Nil: no
	// resolution.
	Resolve func(path string) string
}
