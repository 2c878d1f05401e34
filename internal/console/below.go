package console

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toold/toold/tools/files"
)

// Below is the person's current directory, relative to the workspace; "" is the workspace itself.
type Below string

// From makes a path relative to the workspace. It does not clean the path, since the tools resolve link/..
func (b Below) From(path string) string {
	switch {
	case b == "" || filepath.IsAbs(path) || strings.HasPrefix(path, "~"):
		return path
	case path == "":
		return string(b)
	}
	return string(b) + "/" + path
}

var (
	pathNames  = []string{"file_path", "filePath", "path", "dir_path", "directory", "cwd", "workdir", "working_directory"}
	patchNames = []string{"input", "patch", "patchText"}
)

// Arguments makes the paths in the arguments of a call relative to the workspace, in every spelling that the tools
// accept. It adds the directory to a command or search that has none. ok is false if the arguments have neither: the
// call is about the whole workspace.
func (b Below) Arguments(raw json.RawMessage) (_ json.RawMessage, ok bool) {
	var args map[string]json.RawMessage
	if b == "" || json.Unmarshal(raw, &args) != nil || args == nil {
		return raw, b == ""
	}
	replaced := func(names []string, with func(string) string) (found bool) {
		for _, name := range names {
			var text string
			if given := args[name]; given == nil || json.Unmarshal(given, &text) != nil {
				continue
			}
			args[name], _ = json.Marshal(with(text)) // text
			found = true
		}
		return found
	}
	ok = replaced(pathNames, b.From)
	if own, known := directoryOf(args); known && !ok {
		args[own], _ = json.Marshal(b)
		ok = true
	}
	ok = replaced(patchNames, func(patch string) string { return files.MovePatch(patch, b.From) }) || ok
	if operation, within := b.Arguments(args["operation"]); within {
		args["operation"], ok = operation, true
	}
	if !ok {
		return raw, false
	}
	raw, err := json.Marshal(args)
	return raw, err == nil
}

// InBackground reports whether the arguments of a call ask for background, in any spelling of the tools.
func InBackground(arguments json.RawMessage) bool {
	var a map[string]any
	if json.Unmarshal(arguments, &a) != nil {
		return false
	}
	return a["background"] == true || a["run_in_background"] == true || a["is_background"] == true
}

// directoryOf returns the name of the argument for the directory in which a command or a search works.
func directoryOf(args map[string]json.RawMessage) (name string, known bool) {
	has := func(name string) bool { return args[name] != nil }
	switch {
	case slices.ContainsFunc([]string{"command", "cmd"}, has):
		return "cwd", true
	case has("pattern"):
		return "path", true
	}
	return "", false
}
