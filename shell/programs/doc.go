// Package programs parses commands: what a well-known program does with its words.
//
// The knowledge is data, one stanza for a program or a family of programs in specs/*.txt (for the
// format see specs/README). Go code remains for words that are a language: those of sed, awk, find,
// tar, and git's configuration.
//
// Parse never fails and reads no files. A program outside of PATH and the system directories, or a
// word that may become several and so change the structure of the command, makes a Command that is
// not Known, or Opaque: rules must not allow these.
package programs

// Word is one word of a command as far as it is known before it runs.
type Word struct {
	Text    string `json:"text"`              // the value, or its known prefix if Dynamic
	Dynamic bool   `json:"dynamic,omitempty"` // the rest of the value is known only at run time
	Many    bool   `json:"many,omitempty"`    // it may become any number of words; implies Dynamic
	Number  bool   `json:"-"`                 // the unknown rest is digits, with an optional sign
	Fresh   bool   `json:"-"`                 // the path of a file that mktemp made in the same script, or that tools recreate, or nothing; implies Dynamic
}

// flagLike reports whether the word is a flag, or may become one.
func (w Word) flagLike() bool {
	if w.Dynamic {
		return w.Text == "" || w.Text[0] == '-'
	}
	return len(w.Text) > 1 && w.Text[0] == '-'
}

// Kind is what a command does to an operand.
type Kind int

// The kinds of operand.
const (
	None  Kind = iota // neither a file nor a host
	Read              // a file or a directory is read
	Write             // a path is created, changed, renamed or removed
	Net               // a host is contacted
)

// PartNames is the Part of a tree of which only directories are read: names, not the content of
// files.
const PartNames = "names"

// PartSome is the Part of a tree of which only some files are changed, with any names.
const PartSome = "*"

// Operand is a part of a command that names a file or a host.
type Operand struct {
	Word Word
	Kind Kind
	Tree bool   // everything below it as well
	Part string // of the tree: PartNames, PartSome, or a file name ending; "" = everything
	Link bool   // the link itself, not its target
	Role string // another role: "variable" for an assignment of env, "script" for a file that is run
}

// Level is which preset covers a command with exactly its flags.
type Level int

// The levels.
const (
	CoversNone  Level = iota
	CoversRead        // it only reads
	CoversWrite       // it changes only what it names
)

// Flag is one flag of a command.
type Flag struct {
	Name     string // the first spelling in the specification; as written if unknown
	Value    Word
	HasValue bool
	At       int  // the index of its word in argv
	Dynamic  bool // which flag it is is known only at run time

	spec *flag
	also []string // other meanings: longer flags that it abbreviates
}

// Run is something that a command starts.
type Run struct {
	Argv     []Word // a command; beside a Script, its arguments
	At       int    // index of these in the command's words; 0: not among them
	Script   Word
	Language string // of Script: the name of a shell; "text" if it is parsed otherwise; "" = Argv is the command
	Login    bool   // the shell reads login files first
	Dir      Word   // its working directory; unchanged if empty, unknown if Dynamic
	Adds     bool   // its input appends words, as with xargs
	Replaces string // the mark in the words that the input replaces
	Found    Word   // the known part of the input
}

// Followed reports whether the started command is known word for word, so that it can be judged
// instead.
func (c *Command) Followed() bool { return c.Through || c.Base == "find" }

// Command is what a program does with its words.
type Command struct {
	Name     string // canonical name of the program; "" outside of PATH and the system directories
	Base     string // canonical name of the program in any directory
	Known    bool   // it has a specification with this subcommand
	Sub      []string
	Flags    []Flag
	Words    []Word // the subcommand and the operands, by their canonical names
	Operands []Operand
	Suspects []Word // words that may be paths that it writes or reads, since its effects are not fully known
	Runs     []Run
	Prints   []Operand // trees whose names it prints
	Opaque   string    // why its structure is unknown, or ""
	Anything bool      // it is Opaque, and may run any program or subcommand
	Covers   Level
	Through  bool     // it only does what the started command does
	Fetches  bool     // it only fetches from the hosts that it names
	Input    bool     // it is a shell that runs its input
	Loses    string   // which irrecoverable work it destroys, or ""
	Moves    bool     // Loses applies only if what it moves is removed with its call
	Leaves   bool     // it sends something off this machine
	Network  bool     // it needs the network; Leaves implies it
	Unsafe   []int    // indexes in argv of flags that run another program, write elsewhere, load code
	Code     bool     // it contains code that no rule sees, or reads some from its input
	HasSub   bool     // its first operand is a subcommand
	Carries  bool     // any of its words may start a command that it runs; see MayRun
	OneDash  bool     // its long flags have one dash or two
	Or       *Command // another way to parse it, or nil

	wordAt []int // the indexes of the operands in argv
	spec   *spec
	before int // how many of the flags are before the subcommand
}
