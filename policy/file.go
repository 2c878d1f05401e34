package policy

import "time"

// File is one policy file before compilation. The zero value allows nothing.
type File struct {
	Name     string // path; see Decision.Source
	Title    string
	Headless bool // no one can approve, so Ask becomes Deny
	FoldCase bool // paths match regardless of case
	// AutoCase lets a caller that inspects the workspace set FoldCase. Compile ignores it.
	AutoCase bool
	Defaults Defaults
	Presets  []string // "shell-readonly", "shell-workspace"
	Env      []string // patterns of variables that calls may set for commands
	Commands []Rule
	Paths    []Rule
	Net      []Rule
	Disable  []string // ids of built-in rules
	Clients  []Client

	// AskTimeout is how long an approval may take; 0: as configured. The shortest of all files applies.
	AskTimeout time.Duration
	// OncePer is "conversation" if an approval covers equal effects in the conversation. Only the user's file sets it.
	OncePer string
	// Lines has the lines of defaults that the file sets, by keys such as "defaults.bash". Only these cause warnings.
	Lines map[string]int
}

// Defaults apply to effects that no rule matches. The zero value denies.
type Defaults struct {
	Bash, Read, Write, Net Action
	Unanalysable           Action // Compile rejects Allow
	UnknownRead            Action // paths known only at run time
	UnknownWrite           Action
	UnknownEnv             Action // variables that are not listed
	// Confined is the minimum action in a sandbox (see Confinement) for programs, code passed to programs, variables,
	// and paths known only at run time. Deny has no effect.
	Confined Action
}

// Rule is one rule of a file. The order of rules does not matter.
type Rule struct {
	ID     string
	Action Action
	Reason string
	Line   int // 0: unknown
	Except []string
	// Always requires an approval for each call: earlier ones do not count. Only for ask rules.
	Always bool

	// Commands.
	Classes     []string // "destructive", "outgoing"; only for ask and deny rules
	Run         []string // patterns in the syntax of google/shlex, with {a,b}, * and **
	PermitFlags []string // unsafe flags that the allow rule covers
	ForbidFlags []string // flags that the allow rule does not cover
	// RequireFlags are flags with values, such as "-n dev", that a command must have, in any position, for the allow
	// rule to match. Patterns do not contain them.
	RequireFlags []string
	Dirs         []string // patterns of the working directory; none: any
	// Profile is the sandbox for matching calls: "read-only", "workspace-write", or "" for the configured one. The
	// strictest one applies; it cannot be weaker than the configured one.
	Profile  string
	Match    []string // commands that must match; checked by Compile
	NotMatch []string // commands that must not match

	// Paths.
	Ops   []Kind   // none: both
	Paths []string // absolute patterns, with ${workspace}, ${home} and ${tmp}
	// NoMask excludes the rule from Blocks, because programs write there as a side effect.
	NoMask bool

	// Net.
	Hosts   []string // names, addresses, or "*.example.org"
	Ports   []int    // none: any
	Schemes []string // none: any
	Methods []string // none: any
}

// Options describe this machine.
type Options struct {
	Workspace, Home, Tmp string   // for the placeholders; canonical
	Protected            []string // the daemon's own files and directories
	// Administrator is the administrator's file, or nil. Its rules apply in addition to the user's, and limit how
	// permissive the user's defaults are.
	Administrator *File
	// Resolve resolves symbolic links in literal prefixes of path patterns, as far as these exist. It may be nil.
	Resolve func(path string) string
}
