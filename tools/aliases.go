package tools

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/toold/toold/internal/strict"
	"github.com/toold/toold/tools/argument"
)

// alias is another agent's name for a tool. Policy and journal use the canonical name.
type alias struct {
	tool string
	// adapt converts the arguments; nil: no conversion.
	adapt func([]strict.Member) ([]strict.Member, error)
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

type adapted struct {
	Tool
	adapt func([]strict.Member) ([]strict.Member, error)
}

func (a adapted) Build(args json.RawMessage) (Invocation, error) {
	text, err := a.convert(args)
	if err != nil {
		return nil, err
	}
	return a.Tool.Build(text)
}

// Location returns the location for the converted arguments, as Build does.
func (a adapted) Location(args json.RawMessage) ([]string, bool) {
	located, ok := a.Tool.(Located)
	text, err := a.convert(args)
	if !ok || err != nil {
		return nil, false
	}
	return located.Location(text)
}

func (a adapted) convert(args json.RawMessage) (json.RawMessage, error) {
	members, err := argument.Object(args)
	if err != nil {
		return nil, err
	}
	if members, err = a.adapt(members); err != nil {
		return nil, err
	}
	list := make([][]byte, len(members))
	for i, m := range members {
		list[i] = slices.Concat(m.Quoted, []byte(":"), m.Value)
	}
	return slices.Concat([]byte("{"), bytes.Join(list, []byte(",")), []byte("}")), nil
}

func has(members []strict.Member, names ...string) bool {
	return slices.ContainsFunc(members, func(m strict.Member) bool { return slices.Contains(names, m.Name) })
}

func add(members []strict.Member, name, value string, others ...string) []strict.Member {
	if has(members, name) || has(members, others...) {
		return members
	}
	return append(members, strict.Member{Name: name, Quoted: []byte(`"` + name + `"`), Value: []byte(value)})
}

// numbered adds the defaults of Read: line numbers. It removes offset 0, which means the first line in Read.
func numbered(members []strict.Member) ([]strict.Member, error) {
	members = slices.DeleteFunc(members, func(m strict.Member) bool { return m.Name == "offset" && string(m.Value) == "0" })
	return add(members, "numbered", "true", "encoding"), nil
}

// filesOnly adds the default of Grep: only paths of files.
func filesOnly(members []strict.Member) ([]strict.Member, error) {
	return add(members, "mode", `"files"`, "output_mode"), nil
}

func everyName(members []strict.Member) ([]strict.Member, error) {
	if has(members, "pattern") {
		return nil, &argument.Error{Field: "pattern", Problem: "unknown argument; glob takes one"}
	}
	return add(members, "pattern", `"*"`), nil
}

// scriptOf converts a command given as a list of words to a script.
func scriptOf(members []strict.Member) ([]strict.Member, error) {
	members = slices.DeleteFunc(members, func(m strict.Member) bool {
		switch value := string(m.Value); m.Name {
		case "type":
			return value == `"exec"`
		case "env", "user":
			return value == "{}" || value == "null"
		}
		return false
	})
	for i, m := range members {
		if m.Name != "command" || m.Value[0] != '[' {
			continue
		}
		var words []*string
		if json.Unmarshal(m.Value, &words) != nil || slices.Contains(words, nil) {
			return nil, &argument.Error{Field: "command", Problem: "expected an array of strings, or one string"}
		}
		script, err := json.Marshal(commandLine(words))
		if err != nil {
			return nil, fmt.Errorf("cannot encode the script: %w", err)
		}
		members[i].Value = script
	}
	return members, nil
}

func commandLine(words []*string) string {
	shells := []string{"bash", "sh", "/bin/bash", "/bin/sh", "/usr/bin/bash", "/usr/bin/sh"}
	isScript := len(words) == 3 && (*words[1] == "-c" || *words[1] == "-lc")
	if isScript && slices.Contains(shells, *words[0]) {
		return *words[2]
	}
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = Quote(*w)
	}
	return strings.Join(quoted, " ")
}

// Quote returns a word as bash reads it: in single quotes if a character may be special.
func Quote(word string) string {
	if word != "" && !strings.ContainsFunc(word, special) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

func special(r rune) bool {
	return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:,@%+", r)
}
