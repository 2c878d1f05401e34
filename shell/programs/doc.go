// Package programs parses commands by specifications: specs/*.txt has one stanza for each program or family of
// programs (see specs/README). Sublanguages, such as the scripts of sed and awk, the expression of find and the
// settings of git, are parsed in Go. Parse never fails and reads no files. Rules must not allow a Command that is
// Opaque or not Known.
package programs

import "strings"

// Word is a word of a command as far as it is known before the command runs.
type Word struct {
	Text    string `json:"text"`              // the known prefix if Dynamic
	Dynamic bool   `json:"dynamic,omitempty"` // the rest is known only at run time
	Many    bool   `json:"many,omitempty"`    // any number of words; implies Dynamic
	Number  bool   `json:"-"`                 // the rest is digits, with an optional sign
	Fresh   bool   `json:"-"`                 // path made by mktemp or recreated by tools, or empty; implies Dynamic
	Dir     string `json:"-"`                 // directory of every match of a pattern, if known; implies Dynamic
}

// Pattern sets Dir for a pattern without wildcards in its directory. Before version 5.2, bash's .* matches "..".
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

// mayBeFlags reports whether the word may become any flag, or several words.
func (w Word) mayBeFlags() bool { return w.Many || w.Dynamic && w.flagLike() }

// Kind is the effect of a command on an operand.
type Kind int

// The kinds of operand.
const (
	None  Kind = iota
	Read       // a file or a directory
	Write      // a path is created, changed, renamed or removed
	Net        // a host is contacted
)

// PartNames is the Part of a tree of which only the names are read.
const PartNames = "names"

// PartAttributes is the Part of a file of which only the attributes are read.
const PartAttributes = "attributes"

// PartSome is the Part of a tree in which some files change.
const PartSome = "*"

// PartBrought is the Part of a tree that receives files with unknown names.
const PartBrought = "**"

// Operand is a file or host in a command.
type Operand struct {
	Word Word
	Kind Kind
	Tree bool   // includes everything below
	Part string // PartNames, PartAttributes, PartSome, or a file name ending; "" = everything
	Link bool   // not its target
	Role string // "variable" for an assignment of env, "script" for a file that is run, or Target
}

// Target is the Role of what a symbolic link names: it is written only through the link.
const Target = "target"

// Level is a preset that covers a command with its flags.
type Level int

// The levels.
const (
	CoversNone  Level = iota
	CoversRead        // it only reads
	CoversWrite       // it changes only its operands
)

// Flag is a flag of a command and its first value.
type Flag struct {
	Name     string // first spelling in the specification, or as written
	Value    Word
	HasValue bool
	At       int  // index in argv
	Dynamic  bool // the name is known only at run time

	spec *flag
	also []string // flags that it may stand for as an abbreviation
}

// Run is a command or script that a command starts.
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

	Elsewhere bool // its files are in a container
}

// Followed reports whether rules may judge the started command instead of this one.
func (c *Command) Followed() bool { return c.Through || c.Base == "find" }

// Command is a parsed command.
type Command struct {
	Name     string // "" outside of PATH and system directories
	Base     string // name, in any directory
	Known    bool   // the specification has its subcommand
	Sub      []string
	Flags    []Flag
	Words    []Word // subcommand and operands, in canonical spelling
	Operands []Operand
	Suspects []Word
	Runs     []Run
	Prints   []Operand // trees whose names it prints
	Opaque   string    // why its structure is unknown, or ""
	Anything bool      // Opaque, and may run anything
	Covers   Level
	Through  bool     // it only runs another command
	Fetches  bool     // it only fetches from its hosts
	Input    bool     // it is a shell that runs its input
	Feeds    bool     // its input may be code in another language, or the program is unknown
	Loses    string   // the work that it destroys irrecoverably, or ""
	Moves    bool     // Loses applies only if its destination is removed with the call
	Leaves   bool     // it sends data off this machine
	Network  bool     // implied by Leaves
	Unsafe   []int    // indexes in argv that an allow rule must name
	Code     bool     // it runs code that no rule sees
	Alias    int      // index in argv of a word that may be an alias of git, or 0
	HasSub   bool     // its first operand is a subcommand
	Carries  bool     // any word may start a command; see MayRun
	OneDash  bool     // long flags have one dash or two
	Or       *Command // another possible parse, or nil

	wordAt []int // indexes of operands in argv
	argv   []Word
	spec   *spec
	before int // number of flags before the subcommand
}
