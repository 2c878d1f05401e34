package hook

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
)

const (
	unknown = iota // decided by a rule for its name, or by a person
	shell
	write
	read
	search // reads files below a directory
	names  // reads only names below a directory
	editor // "command" in the arguments decides
	patch
	fetch
	startsAgent
	harmless // has no effect on the machine
)

// kindOf returns what a tool does. A name that several agents use has the same meaning in all of them.
func kindOf(tool string) int {
	for kind, list := range map[int]string{
		shell: `Bash bash shell Shell local_shell shell_command ShellCommand RunShellCommand run_shell_command ExecCommand exec_command
			container.exec run_in_terminal runInTerminal execute_command run_command run_terminal_cmd developer__shell Monitor`,
		write: `Write write WriteFile write_file Edit edit MultiEdit multi_edit multiedit NotebookEdit Replace replace Delete delete_file
			create_file createFile edit_file editFiles insert_edit_into_file replace_string_in_file multi_replace_string_in_file edit_notebook_file create_directory search_replace`,
		read:        `Read read ReadFile read_file readFile view view_image NotebookRead`,
		search:      `Grep grep grep_search search_file_content textSearch findTextInFiles read_many_files`,
		names:       `Glob glob LS ls list_dir listDirectory list_directory file_search fileSearch`,
		editor:      `text_editor developer__text_editor str_replace_editor str_replace_based_edit_tool`,
		patch:       `apply_patch ApplyPatch applyPatch`,
		fetch:       `WebFetch web_fetch fetch fetch_webpage`,
		startsAgent: `Task Agent task agent`,
		harmless: `TodoWrite TodoRead todo_write todos write_todos update_plan manage_todo_list ListAgents SendMessage TaskCreate TaskGet TaskUpdate TaskList
			TaskOutput TaskStop BashOutput KillShell KillBash AskUserQuestion ask_user ExitPlanMode EnterPlanMode ToolSearch ReportFindings ScheduleWakeup think`,
	} {
		for name := range strings.FieldsSeq(list) {
			if name == tool {
				return kind
			}
		}
	}
	return unknown
}

// Arguments returns the arguments of the judge tool for a call of an agent. They contain "unclear" if the agent may
// understand the call differently than toold; the tool then refuses the call.
func Arguments(program string, c Call) map[string]any {
	dir := c.Dir
	if canonical, err := filepath.EvalSymlinks(dir); err == nil {
		dir = canonical // so that another spelling of the path is the same call
	}
	a := map[string]any{"program": program, "tool": c.Tool, "cwd": dir, "input": c.Input}
	switch kind := kindOf(c.Tool); kind {
	case unknown:
		a["other"] = true
	case harmless:
		a["harmless"] = true
	case startsAgent: // calls of subagents are decided on, except in Letta Code, where they are separate programs
		if program == "letta" {
			a["other"] = true
		} else {
			a["harmless"] = true
		}
	default:
		f, err := split(c.Input)
		known := false
		if err == nil {
			known, err = does(a, f, kind)
		}
		if err != nil {
			a["unclear"] = err.Error()
		} else if !known {
			a["other"] = true
		}
	}
	return a
}

func does(a map[string]any, f fields, kind int) (known bool, err error) {
	switch kind {
	case shell:
		return script(a, f)
	case fetch:
		return hosts(a, f)
	case patch:
		return patched(a, f)
	case search, names:
		return below(a, f, kind)
	}
	return files(a, f, kind)
}

func script(a map[string]any, f fields) (bool, error) {
	command, err := f.only("command", "cmd", "script")
	if err != nil {
		return false, err
	}
	dir, err := f.onlyText("workdir", "cwd", "dirpath", "directory", "workingdirectory")
	if command != nil {
		a["command"] = command
	}
	if dir != "" {
		a["in"] = dir
	}
	return command != nil, err
}

func hosts(a map[string]any, f fields) (bool, error) {
	address, err := f.onlyText("url", "uri")
	if err != nil {
		return false, err
	}
	if f["prompt"] != nil && a["tool"] != "WebFetch" {
		return false, nil // Gemini CLI reads addresses in the prompt
	}
	list, err := f.list("urls")
	if address != "" {
		list = append(list, address)
	}
	var hosts []string
	for _, address := range list {
		u, err := url.Parse(address)
		if err != nil || u.Hostname() == "" {
			return false, nil
		}
		hosts = append(hosts, u.Hostname())
	}
	return put(a, "hosts", hosts), err
}

func patched(a map[string]any, f fields) (bool, error) {
	text, err := f.onlyText("input", "patch", "patchtext", "command")
	var list []string
	for line := range strings.Lines(text) {
		for _, begin := range []string{"*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: "} {
			if path, ok := strings.CutPrefix(strings.TrimSpace(line), begin); ok {
				list = append(list, strings.TrimSpace(path))
			}
		}
	}
	return put(a, "write", list), err
}

func put(a map[string]any, name string, list []string) bool {
	if len(list) > 0 {
		a[name] = list
	}
	return len(list) > 0
}

// below adds what a search reads. If the agent does not know the name of the directory field, it searches its working
// directory.
func below(a map[string]any, f fields, kind int) (bool, error) {
	dir := a["cwd"].(string)
	list, err := paths(f)
	if err != nil {
		return false, err
	}
	obeyed := "path"
	if a["program"] == "gemini" {
		obeyed = "dirpath"
	}
	if one := f.text(obeyed); one == "" || len(list) != 1 {
		list = append(list, dir)
	}
	if kind == names {
		a["part"] = "names"
		pattern, err := f.onlyText("pattern", "globpattern", "query")
		if err != nil {
			return false, err
		}
		if list, err = patterned(list, pattern); err != nil {
			return false, err
		}
	}
	a["search"] = list
	return true, nil
}

// patterned returns the directories that contain the files matching a pattern.
func patterned(dirs []string, pattern string) ([]string, error) {
	wild := strings.IndexAny(pattern+"*", "*?[{(!+@\\")
	fixed := pattern[:strings.LastIndex(pattern[:wild], "/")+1]
	if slices.Contains(strings.FieldsFunc(pattern[len(fixed):], func(r rune) bool { return strings.ContainsRune("/{},()|", r) }), "..") {
		return nil, fmt.Errorf("the pattern %q has .. behind what it may match, so where it leads is not known; give the directory", pattern)
	}
	if fixed == "" {
		return dirs, nil
	}
	for i, dir := range dirs {
		dirs[i] = fixed
		if !filepath.IsAbs(fixed) && !strings.HasPrefix(fixed, "~") {
			dirs[i] = dir + "/" + fixed
		}
	}
	return dirs, nil
}

func files(a map[string]any, f fields, kind int) (bool, error) {
	list, err := paths(f)
	if err != nil {
		return false, err
	}
	if kind == editor {
		command, err := f.onlyText("command")
		if err != nil {
			return false, err
		}
		if command == "view" {
			kind = read
		}
	}
	if kind == read {
		return put(a, "read", list), nil
	}
	return put(a, "write", list), nil
}

func paths(f fields) (list []string, err error) {
	f = maps.Clone(f) // some agents set unused fields to ""
	maps.DeleteFunc(f, func(_ string, value json.RawMessage) bool { return string(value) == `""` })
	one, err := f.onlyText("filepath", "path", "notebookpath", "absolutepath", "targetfile", "targetnotebook", "dirpath", "directory", "targetdirectory", "relativeworkspacepath")
	if err != nil {
		return nil, err
	}
	if one != "" {
		list = append(list, one)
	}
	for _, name := range []string{"files", "paths", "filepaths", "edits", "replacements"} {
		more, err := f.list(name)
		if err != nil {
			return nil, err
		}
		list = append(list, more...)
	}
	for i, path := range list {
		if list[i], err = local(path); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// local returns the path in a file URL.
func local(path string) (string, error) {
	at, ok := strings.CutPrefix(path, "file://")
	if ok && (!strings.HasPrefix(at, "/") || strings.ContainsAny(at, "%?#")) {
		return "", fmt.Errorf("the address %q may be read as several paths; write the path", path)
	}
	return at, nil
}
