package connect

import (
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/toold/toold/internal/edit"
)

// hookPath is the setting of Claude Code and Letta Code for hooks that decide on calls.
func hookPath() edit.Path { return edit.Path{"hooks", "PreToolUse"} }

// DeadHooks lists hooks of toold in an agent's settings that start a missing program.
func (a Agent) DeadHooks(s Setup) (list []string) {
	files, err := a.files(s)
	if err != nil {
		return nil // Plan returns the error
	}
	for _, f := range files {
		text, err := os.ReadFile(f.Path)
		if err != nil || f.Format != edit.JSON {
			continue
		}
		var entries []struct{ Hooks []struct{ Command string } }
		if ok, err := edit.Value(f.Format, string(text), hookPath(), &entries); !ok || err != nil {
			continue // in another form, so not toold's
		}
		for _, e := range entries {
			for _, h := range e.Hooks {
				program := firstWord(h.Command)
				if _, err := exec.LookPath(program); err != nil && strings.Contains(h.Command, " hook "+a.Name) {
					list = append(list, fmt.Sprintf("a hook in %s starts %s, which is missing, and %s may run nothing: take it out there", f.Path, program, a.Title))
				}
			}
		}
	}
	return list
}

// firstWord returns the first word of a command line, quoted as by claude.Line or unquoted.
func firstWord(line string) string {
	rest, quoted := strings.CutPrefix(line, "'")
	if !quoted {
		word, _, _ := strings.Cut(line, " ")
		return word
	}
	word, _, _ := strings.Cut(strings.ReplaceAll(rest, `'\''`, "\x00"), "'")
	return strings.ReplaceAll(word, "\x00", "'")
}
