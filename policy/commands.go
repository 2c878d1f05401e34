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

// TakesCode reports whether a command carries code that no rule sees: in its words,
// or from its standard input.
func TakesCode(argv []Word) bool {
	return len(argv) > 0 && !argv[0].Dynamic && programs.Parse(argv).Code
}

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
