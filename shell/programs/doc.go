// Package programs reads commands: what a well-known program does with its words.
//
// Everything it knows is data, one stanza for a program or a family of programs
// in specs/*.txt (the format is described in specs/README). Go code remains for
// the languages that some words are: those of sed, awk, find, tar, and git's
// configuration.
//
// Parse never fails and reads no files. A program at another path than PATH's, or
// a word that may become several where the structure of the command depends on it,
// makes a Command that is not Known, or Opaque: rules must not allow these.
package programs

// Word is one word of a command as far as it is known before it runs.
type Word struct {
	Text    string `json:"text"`              // the value, or its known beginning when Dynamic
	Dynamic bool   `json:"dynamic,omitempty"` // the rest of the value is known only at run time
	Many    bool   `json:"many,omitempty"`    // it may become any number of words; implies Dynamic
	Number  bool   `json:"-"`                 // the rest are digits, after a sign at most
	Fresh   bool   `json:"-"`                 // the path of what mktemp made in the same script, or of what tools make again, or nothing; implies Dynamic
}

// flagLike reports whether the word is a flag, or may become one.
func (w Word) flagLike() bool {
	if w.Dynamic {
		return w.Text == "" || w.Text[0] == '-'
	}
	return len(w.Text) > 1 && w.Text[0] == '-'
}

// Kind says what a command does to an operand.
type Kind int

// The kinds of operand.
const (
	None  Kind = iota // it is no file and no host
	Read              // a file or a directory is read
	Write             // a path is created, changed, renamed or removed
	Net               // a host is contacted
)

// PartNames is the Part of a tree of which only the directories are read: the
// names in them, and not what is in the files.
const PartNames = "names"

// PartSome is the Part of a tree of which only some files are changed, whatever their
// names are.
const PartSome = "*"

// Operand is a part of a command that names a file or a host.
type Operand struct {
	Word Word
	Kind Kind
	Tree bool   // everything below it as well
	Part string // of the tree: PartNames, PartSome, or the end that the names of the files have; "" = everything
	Link bool   // the link itself is meant, not what it points to
	Role string // what else it is: "variable" for an assignment of env, "script" for a file that is run
}

// Level says which preset covers a command with exactly its flags.
type Level int

// The levels.
const (
	CoversNone  Level = iota
	CoversRead        // it only looks
	CoversWrite       // it changes only what it names
)

// Flag is one flag of a command.
type Flag struct {
	Name     string // the first spelling in the specification; as written when that is not known
	Value    Word
	HasValue bool
	At       int  // the index of its word in argv
	Dynamic  bool // it is known only at run time which flag it is

	spec *flag
	also []string // what else it may mean: longer flags that it abbreviates
}

// Run is something that a command starts.
type Run struct {
	Argv     []Word // a command; beside a Script, its arguments
	At       int    // where these are in the command's words; 0 when they are not
	Script   Word
	Language string // of Script: the name of a shell; "text" when it is read in another way; "" = Argv is the command
	Login    bool   // the shell reads the files of a login before
	Dir      Word   // the directory it runs in; the same when empty, unknown when Dynamic
	Adds     bool   // its input adds words, as with xargs
	Replaces string // the mark in the words in whose place the input is put
	Found    Word   // what is known of the input
}

// Followed reports whether what the command starts is known word for word, so that it can
// be judged in its place.
func (c *Command) Followed() bool { return c.Through || c.Base == "find" }

// Command is what a program does with its words.
type Command struct {
	Name     string // canonical name of the program; "" when it is not PATH's or a system directory's
	Base     string // canonical name of the program, whatever its directory
	Known    bool   // there is a specification for it, with this subcommand
	Sub      []string
	Flags    []Flag
	Words    []Word // the subcommand and the operands, by their canonical names
	Operands []Operand
	Suspects []Word // words that may be paths that it writes, or reads: not all that they do is known
	Runs     []Run
	Prints   []Operand // trees whose names it prints
	Opaque   string    // not "": why its structure is not known
	Anything bool      // it is Opaque, and may run any program or subcommand
	Covers   Level
	Through  bool     // it does no more than what it runs does
	Fetches  bool     // it only fetches from the hosts that it names
	Input    bool     // it is a shell that runs its input
	Loses    string   // not "": which work it destroys that cannot be had again
	Moves    bool     // Loses is so only where what it moves is gone with its call
	Leaves   bool     // it sends something off this machine
	Network  bool     // it needs the network; Leaves implies it
	Unsafe   []int    // the indices in argv of flags that run another program, write elsewhere, load code
	Code     bool     // it carries code that no rule sees, or takes some from its input
	HasSub   bool     // its first operand says what it shall do
	Carries  bool     // any of its words may begin a command that it runs; see MayRun
	OneDash  bool     // its long flags have one dash or two
	Or       *Command // another way to read it; nil when there is none

	wordAt []int // the indexes of the operands in argv
	spec   *spec
	before int // how many of the flags stand before the subcommand
}
