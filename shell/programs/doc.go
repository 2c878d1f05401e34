// Package programs parses commands by specifications, one stanza for each program or family of
// programs in specs/*.txt (see specs/README). Words in languages are parsed in Go: those of sed,
// awk, find, tar and git's settings. Parse never fails and reads no files. A Command that is
// Opaque, or not Known, must not be allowed by rules.
package programs

import "strings"

// Word is a word of a command, as far as it is known before it runs.
type Word struct {
	Text    string `json:"text"`              // the known prefix if Dynamic
	Dynamic bool   `json:"dynamic,omitempty"` // the rest is known only at run time
	Many    bool   `json:"many,omitempty"`    // any number of words; implies Dynamic
	Number  bool   `json:"-"`                 // the rest is digits, with an optional sign
	Fresh   bool   `json:"-"`                 // a path made by mktemp or recreated by tools, or nothing; implies Dynamic
	Dir     string `json:"-"`                 // the directory of all that a pattern matches, if it is known; implies Dynamic
}

// Pattern sets the directory of a pattern of which only the last name is one. Bash before 5.2 matches .. with .*.
func (w *Word) Pattern(text string) {
	dir, name, _ := cutLast(text)
	mayBeParent := name == "" || strings.IndexByte(`.?[\`, name[0]) >= 0
	if !mayBeParent && !strings.ContainsAny(dir, `*?[\`) {
		w.Dir = dir
	}
}

func (w Word) flagLike() bool {
	if w.Dynamic {
		return w.Text == "" || w.Text[0] == '-'
	}
	return len(w.Text) > 1 && w.Text[0] == '-'
}

// mayBeFlags reports whether the word may become any flag, or several.
func (w Word) mayBeFlags() bool { return w.Many || w.Dynamic && w.flagLike() }

// Kind is what a command does to an operand.
type Kind int

// The kinds of operand.
const (
	None  Kind = iota
	Read       // a file or a directory
	Write      // a path is created, changed, renamed or removed
	Net        // a host is contacted
)

// PartNames is the Part of a tree of which only names are read.
const PartNames = "names"

// PartAttributes is the Part of a file of which nothing but its attributes is read.
const PartAttributes = "attributes"

// PartSome is the Part of a tree of which some files are changed.
const PartSome = "*"

// PartBrought is the Part of a tree to which files are brought whose names are not known.
const PartBrought = "**"

// Operand is a file or a host in a command.
type Operand struct {
	Word Word
	Kind Kind
	Tree bool   // with everything below
	Part string // PartNames, PartAttributes, PartSome, or a file name ending; "" = everything
	Link bool   // not its target
	Role string // "variable" for an assignment of env, "script" for a file that is run
}

// Level is a preset that covers a command with its flags.
type Level int

// The levels.
const (
	CoversNone  Level = iota
	CoversRead        // it only reads
	CoversWrite       // it changes only its operands
)

// Flag is a flag of a command, with its first value.
type Flag struct {
	Name     string // as first in the specification, or as written
	Value    Word
	HasValue bool
	At       int  // index in argv
	Dynamic  bool // the name is known only at run time

	spec *flag
	also []string // flags that it may abbreviate
}

// Run is something that a command starts.
type Run struct {
	Argv     []Word // a command, or the arguments of Script
	At       int    // index of Argv in the command; 0 = none
	Script   Word
	Language string // a shell; "text" = parsed otherwise; "" = Argv is a command
	Login    bool   // it reads login files
	Dir      Word   // empty = unchanged, Dynamic = unknown
	Adds     bool   // its input appends words
	Replaces string // what its input replaces
	Found    Word   // known part of its input
}

// Followed reports whether the started command can be judged instead.
func (c *Command) Followed() bool { return c.Through || c.Base == "find" }

// Command is a parsed command.
type Command struct {
	Name     string // "" outside of PATH and the system directories
	Base     string // name in any directory
	Known    bool   // the specification has its subcommand
	Sub      []string
	Flags    []Flag
	Words    []Word // subcommand and operands, by canonical names
	Operands []Operand
	Suspects []Word // possible paths
	Runs     []Run
	Prints   []Operand // trees whose names it prints
	Opaque   string    // why its structure is unknown, or ""
	Anything bool      // it is Opaque and may run anything
	Covers   Level
	Through  bool     // it only runs another command
	Fetches  bool     // it only fetches from its hosts
	Input    bool     // it is a shell that runs its input
	Feeds    bool     // its input may be code in another language, or nothing is known of it
	Loses    string   // the irrecoverable work that it destroys, or ""
	Moves    bool     // Loses applies only if its destination is removed with the call
	Leaves   bool     // it sends data off this machine
	Network  bool     // implied by Leaves
	Unsafe   []int    // indexes in argv that an allow rule must name
	Code     bool     // it runs code that no rule sees
	Alias    int      // index in argv of what is no subcommand of git but may be an alias, or 0
	HasSub   bool     // its first operand is a subcommand
	Carries  bool     // any word may start a command; see MayRun
	OneDash  bool     // long flags have one dash or two
	Or       *Command // another way to parse it, or nil

	wordAt []int // indexes of operands in argv
	argv   []Word
	spec   *spec
	before int // number of flags before the subcommand
}
