package tools

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/toold/toold/internal/strict"
)

// alias is another agent's name for a tool.
type alias struct {
	tool string
	// adapt converts the arguments; nil: none are converted.
	adapt func([]member) ([]member, error)
}

func aliases() map[string]alias {
	return map[string]alias{
		"Bash":                {"bash", nil},
		"shell":               {"bash", scriptOf},
		"Shell":               {"bash", scriptOf},
		"local_shell":         {"bash", scriptOf},
		"ShellCommand":        {"bash", nil},
		"shell_command":       {"bash", nil},
		"RunShellCommand":     {"bash", nil},
		"run_shell_command":   {"bash", nil},
		"ExecCommand":         {"bash", nil},
		"exec_command":        {"bash", nil},
		"BashOutput":          {"bash_output", nil},
		"KillBash":            {"bash_kill", nil},
		"KillShell":           {"bash_kill", nil},
		"Read":                {"read_file", numbered},
		"read":                {"read_file", nil},
		"ReadFile":            {"read_file", nil},
		"Write":               {"write_file", nil},
		"write":               {"write_file", nil},
		"WriteFile":           {"write_file", nil},
		"Edit":                {"edit_file", nil},
		"edit":                {"edit_file", nil},
		"MultiEdit":           {"multi_edit", nil},
		"ApplyPatch":          {"apply_patch", nil},
		"Replace":             {"edit_file", nil},
		"str_replace_editor":  {"str_replace_based_edit_tool", nil},
		"replace":             {"edit_file", nil},
		"Grep":                {"grep", filesOnly},
		"search_file_content": {"grep", nil},
		"Glob":                {"glob", nil},
		"LS":                  {"glob", everyName},
		"list_directory":      {"glob", everyName},
	}
}

// adapted is a tool under an alias with other arguments.
type adapted struct {
	Tool
	adapt func([]member) ([]member, error)
}

func (a adapted) Build(args json.RawMessage) (Invocation, error) {
	members, err := readObject(args)
	if err != nil {
		return nil, err
	}
	if members, err = a.adapt(members); err != nil {
		return nil, err
	}
	return a.Tool.Build(writeObject(members))
}

func writeObject(members []member) json.RawMessage {
	text := []byte{'{'}
	for i, m := range members {
		if i > 0 {
			text = append(text, ',')
		}
		name, err := json.Marshal(m.name)
		if err != nil {
			name = []byte(`""`)
		}
		text = append(append(append(text, name...), ':'), m.value...)
	}
	return append(text, '}')
}

func has(members []member, names ...string) bool {
	return slices.ContainsFunc(members, func(m member) bool { return slices.Contains(names, m.name) })
}

// numbered requests line numbers, the default of Read, and accepts offset 0.
func numbered(members []member) ([]member, error) {
	members = slices.DeleteFunc(members, func(m member) bool { return m.name == "offset" && string(m.value) == "0" })
	if !has(members, "numbered", "encoding") {
		members = append(members, member{"numbered", json.RawMessage("true")})
	}
	return members, nil
}

// filesOnly requests the paths of files, the default of Grep.
func filesOnly(members []member) ([]member, error) {
	if !has(members, "mode", "output_mode") {
		members = append(members, member{"mode", json.RawMessage(`"files"`)})
	}
	return members, nil
}

func everyName(members []member) ([]member, error) {
	if has(members, "pattern") {
		return nil, &ArgumentError{Field: "pattern", Problem: "unknown argument; glob takes one"}
	}
	return append(members, member{"pattern", json.RawMessage(`"*"`)}), nil
}

// scriptOf converts a command that is a list of words to a script.
func scriptOf(members []member) ([]member, error) {
	members = slices.DeleteFunc(members, func(m member) bool {
		return m.name == "type" && string(m.value) == `"exec"` ||
			(m.name == "env" || m.name == "user") && (string(m.value) == "{}" || string(m.value) == "null")
	})
	for i, m := range members {
		if m.name != "command" || m.kind() != "an array" {
			continue
		}
		var words []string
		values, err := strict.Array(m.value, math.MaxInt)
		if err != nil {
			return nil, err // cannot happen: it is an array
		}
		for _, value := range values {
			word, ok := member{value: value}.text()
			if !ok {
				return nil, &ArgumentError{Field: "command", Problem: "expected an array of strings, or one string"}
			}
			words = append(words, word)
		}
		script, err := json.Marshal(commandLine(words))
		if err != nil {
			return nil, fmt.Errorf("cannot encode the script: %w", err)
		}
		members[i].value = script
	}
	return members, nil
}

// commandLine returns the script of a shell command line, or else quotes each word.
func commandLine(words []string) string {
	shells := []string{"bash", "sh", "/bin/bash", "/bin/sh", "/usr/bin/bash", "/usr/bin/sh"}
	if len(words) == 3 && slices.Contains(shells, words[0]) && (words[1] == "-c" || words[1] == "-lc") {
		return words[2]
	}
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = w
		if w == "" || strings.ContainsFunc(w, special) {
			quoted[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return strings.Join(quoted, " ")
}

func special(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("-_./:,@%+", r)
}
