package policy

import "time"

// File is one layer of policy, not compiled. The zero value allows nothing.
type File struct {
	Name     string // path, for Decision.Source
	Title    string
	Headless bool // no one can be asked: what would be asked is denied
	FoldCase bool // paths that differ only in case are equal
	// AutoCase lets a caller that inspects the workspace set FoldCase. Compile only uses FoldCase.
	AutoCase bool
	Defaults Defaults
	Presets  []string // "shell-readonly", "shell-workspace"
	Env      []string // patterns of variables that may be set for a command
	Commands []Rule
	Paths    []Rule
	Net      []Rule
	Disable  []string // ids of built-in rules
	Clients  []Client

	// AskTimeout is how long a person has to answer; 0: as configured. The shortest applies.
	AskTimeout time.Duration
	// OncePer is "conversation" if a yes answers the same question in a conversation. Only the user's file sets it.
	OncePer string
	// Lines of the defaults that the file sets, by keys such as "defaults.bash". Only these cause warnings.
	Lines map[string]int
}

// Defaults decide effects that no rule matches. The zero value denies.
type Defaults struct {
	Bash, Read, Write, Net Action
	Unanalysable           Action // Allow is rejected
	UnknownRead            Action // paths that exist only at run time
	UnknownWrite           Action
	UnknownEnv             Action // unlisted variables
	// Confined is the minimum for programs, code passed to them, paths known only at run time and variables while a
	// sandbox bounds the call; see Confinement. Deny changes nothing.
	Confined Action
}

// Rule is one rule of a file. Their order does not matter.
type Rule struct {
	ID     string
	Action Action
	Reason string
	Line   int // 0: unknown
	Except []string
	// Always requires an answer for each call: earlier answers do not apply. It is for ask rules.
	Always bool

	// Commands.
	Classes     []string // "destructive", "outgoing"; for ask and deny rules
	Run         []string // patterns by google/shlex, with {a,b}, * and **
	PermitFlags []string // unsafe flags that an allow rule covers
	ForbidFlags []string // flags that an allow rule does not cover
	// RequireFlags are flags with their values, such as "-n dev", that an allow rule needs anywhere in a command.
	// Patterns omit them.
	RequireFlags []string
	Dirs         []string // patterns of the working directory; empty = any
	// Profile is the sandbox for matching calls: "read-only", "workspace-write", or "" for the configured one. The
	// strictest applies. It cannot loosen the configured one.
	Profile  string
	Match    []string // examples that must match, checked by Compile
	NotMatch []string // examples that must not match

	// Paths.
	Ops   []Kind   // empty = both
	Paths []string // absolute, with ${workspace}, ${home} and ${tmp}
	// NoMask excludes the rule from Blocks: programs write there without saying so.
	NoMask bool

	// Net.
	Hosts   []string // names, addresses, or "*.example.org"
	Ports   []int    // empty = any
	Schemes []string // empty = any
	Methods []string // empty = any
}

// Options are facts about this machine.
type Options struct {
	Workspace, Home, Tmp string   // of the placeholders; canonical
	Protected            []string // the daemon's own files and directories
	// Administrator is the administrator's file, or nil. Its rules apply besides the user's, and no default of
	// the user's is more permissive than its own.
	Administrator *File
	// Resolve resolves the links of literal prefixes of path patterns as far as they exist; may be nil.
	Resolve func(path string) string
}
