package hook

import (
	"encoding/json"
	"net/url"
	"path/filepath"
	"strings"
)

const (
	unknown = iota // a rule for its name decides, or a person
	shell
	write
	read
	search // reads everything below a directory
	names  // reads only names below a directory
	editor // depends on the argument "command"
	patch
	fetch
	startsAgent
	harmless // does not affect the machine
)

// kindOf returns what a tool does. Names that several agents use mean the same in all.
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

// Arguments returns the arguments of the tool judge for a call of an agent.
func Arguments(program string, c Call) map[string]any {
	dir := c.Dir
	if canonical, err := filepath.EvalSymlinks(dir); err == nil {
		dir = canonical // another spelling of the path is the same call
	}
	a := map[string]any{"program": program, "tool": c.Tool, "cwd": dir, "input": c.Input}
	var f fields
	known := json.Unmarshal(c.Input, &f) == nil
	if known {
		switch kind := kindOf(c.Tool); kind {
		case shell:
			known = script(a, f)
		case fetch:
			known = host(a, f)
		case patch:
			known = patched(a, f)
		case search, names:
			known = below(a, f, kind, dir)
		case editor, write, read:
			known = files(a, f, kind)
		case startsAgent: // the agents' tools are judged, except those of Letta Code, which are separate programs
			a["harmless"], known = true, program != "letta"
		case harmless:
			a["harmless"] = true
		default:
			known = false
		}
	}
	if !known {
		delete(a, "harmless")
		a["other"] = true
	}
	return a
}

func script(a map[string]any, f fields) bool {
	for _, name := range []string{"command", "cmd", "script"} {
		if f[name] != nil && string(f[name]) != "null" {
			a["command"] = f[name]
			break
		}
	}
	if dir := f.text("workdir", "cwd", "dir_path", "directory", "working_directory"); dir != "" {
		a["in"] = dir
	}
	return a["command"] != nil
}

func host(a map[string]any, f fields) bool {
	u, err := url.Parse(f.text("url"))
	if err != nil || u.Hostname() == "" {
		return false
	}
	a["hosts"] = []string{u.Hostname()}
	return true
}

func patched(a map[string]any, f fields) bool {
	var list []string
	for line := range strings.Lines(f.text("input", "patch", "patchText", "command")) {
		for _, begin := range []string{"*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: "} {
			if path, ok := strings.CutPrefix(strings.TrimSpace(line), begin); ok {
				list = append(list, strings.TrimSpace(path))
			}
		}
	}
	return put(a, "write", list)
}

func put(a map[string]any, name string, list []string) bool {
	if len(list) > 0 {
		a[name] = list
	}
	return len(list) > 0
}

func below(a map[string]any, f fields, kind int, dir string) bool {
	list := paths(f)
	if len(list) == 0 {
		list = []string{dir}
	}
	a["search"] = list
	if kind == names {
		a["part"] = "names"
	}
	return true
}

func files(a map[string]any, f fields, kind int) bool {
	list := paths(f)
	if kind == read || kind == editor && f.text("command") == "view" {
		return put(a, "read", list)
	}
	return put(a, "write", list)
}

func paths(f fields) (list []string) {
	for _, name := range []string{"file_path", "filePath", "path", "notebook_path", "absolute_path", "target_file", "target_notebook", "dir_path", "dirPath", "directory", "target_directory", "relative_workspace_path"} {
		if path := f.text(name); path != "" {
			list = append(list, strings.TrimPrefix(path, "file://"))
		}
	}
	for _, name := range []string{"files", "paths", "file_paths", "filePaths"} {
		var more []string
		if json.Unmarshal(f[name], &more) == nil {
			list = append(list, more...)
		}
	}
	for _, name := range []string{"files", "edits", "replacements"} {
		var more []fields
		if json.Unmarshal(f[name], &more) == nil {
			for _, each := range more {
				list = append(list, paths(each)...)
			}
		}
	}
	return list
}
