package policy

import (
	"strings"

	"github.com/toold/toold/shell/programs"
)

// Word is one word of a command as far as it is known before it runs.
type Word = programs.Word

// PartNames is the Part of a tree of which only the directories are read: the names
// in them, and not what is in the files.
const PartNames = programs.PartNames

// Usage is what a well-known command does with its arguments, as far as they
// tell without running it.
type Usage struct {
	Known    bool // the command is known, with this subcommand
	Operands []Operand
	Names    []Operand // trees whose names it prints
}

// Operand is a part of a command that names a file or a host.
type Operand struct {
	Word Word
	Kind Kind   // Read, Write or Net
	Tree bool   // everything below it as well
	Part string // of the tree; see Effect
	Link bool   // the link itself is meant, not what it points to
}

// Describe says what a command does with its operands, and those of a module or
// package that it starts.
func Describe(argv []Word) Usage {
	if len(argv) == 0 || argv[0].Dynamic {
		return Usage{}
	}
	c := programs.Parse(argv)
	u := Usage{Known: c.Known, Operands: operandsOf(c.Operands), Names: operandsOf(c.Prints)}
	for _, run := range c.Runs {
		if len(run.Argv) == 0 || c.Prints != nil {
			continue
		}
		inner := programs.Parse(run.Argv)
		u.Operands = append(u.Operands, operandsOf(inner.Operands)...)
		u.Known = u.Known && (inner.Known || strings.HasPrefix(c.Base, "python"))
	}
	return u
}

// operandsOf returns operands as effects name them.
func operandsOf(operands []programs.Operand) (out []Operand) {
	kinds := map[programs.Kind]Kind{programs.Read: Read, programs.Write: Write, programs.Net: Net}
	for _, o := range operands {
		if o.Kind != programs.None {
			out = append(out, Operand{Word: o.Word, Kind: kinds[o.Kind], Tree: o.Tree, Part: o.Part, Link: o.Link})
		}
	}
	return out
}

// Suspects returns the words of a command that may be paths when its program is
// not known.
func Suspects(argv []Word) []Word {
	c := programs.Parse(argv)
	out := c.Suspects
	for _, run := range c.Runs {
		out = append(out, programs.Parse(run.Argv).Suspects...)
	}
	return out
}

// SystemProgram returns the base name of a program that is found by PATH or is in
// a system directory. ok is false for any other program.
func SystemProgram(program string) (name string, ok bool) { return programs.System(program) }

// TakesCode reports whether a command carries code that no rule sees: in its words,
// or from its standard input.
func TakesCode(argv []Word) bool {
	return len(argv) > 0 && !argv[0].Dynamic && programs.Parse(argv).Code
}

// KnowsFlags reports whether the spellings of the flags of a program are known: a
// rule that asks or denies then matches each of them.
func KnowsFlags(program string) bool { return programs.KnowsFlags(program) }

// NearProgram returns the well-known program that was probably meant by a name that
// is none, or "". It is for warnings.
func NearProgram(name string) string { return programs.Near(name) }

// RunsAnything reports whether a program runs what its arguments say. A rule that
// allows it with a wildcard allows more than it names.
func RunsAnything(program string) bool { return programs.RunsAnything(program) }

// trustedName returns the base name of a program in a system directory, and
// every other name as it is.
func trustedName(program string) string {
	if name, ok := programs.System(program); ok && name != "" {
		return name
	}
	return program
}

// baseName returns what is after the last slash.
func baseName(program string) string { return program[strings.LastIndexByte(program, '/')+1:] }
