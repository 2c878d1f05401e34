package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// callFlags are the arguments of a call as flags. Only given ones are sent.
type callFlags struct {
	raw string // --arguments

	cwd, terminal         string
	timeout               int64
	stdin, background     bool
	offset, limit, wait   int64
	content, old, replace string
	all                   bool
}

func (f *callFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.raw, "arguments", "", "all arguments as one `JSON` object")
	f.registerBash(cmd)
	flags.Int64Var(&f.offset, "offset", 0, "read_file: first `line`, counted from 1; bash_output: first byte, from 0")
	flags.Int64Var(&f.limit, "limit", 0, "read_file: number of `lines`; bash_output: of bytes")
	flags.Int64Var(&f.wait, "wait", 0, "bash_output: `milliseconds` to wait for output, or for the end")
	flags.StringVar(&f.content, "content", "", "write_file: the new content; - takes standard input")
	flags.StringVar(&f.old, "old", "", "edit_file: the text to replace")
	flags.StringVar(&f.replace, "new", "", "edit_file: the text to put there")
	flags.BoolVar(&f.all, "all", false, "edit_file: replace every match")
}

func (f *callFlags) registerBash(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.cwd, "cwd", "", "bash: `directory` to run in; default: the current one")
	flags.Int64Var(&f.timeout, "timeout", 0, "bash: `milliseconds` after which the command is stopped")
	flags.StringVar(&f.terminal, "terminal", "", "bash: split, single or off")
	flags.BoolVar(&f.stdin, "stdin", false, "bash: send this program's standard input to the command")
	flags.BoolVar(&f.background, "background", false, "bash: let it run on in the running daemon; print its id")
}

type argument struct {
	flag, name string
	tools      []string
	value      func(*callFlags) any
}

func operandTools() []string {
	return []string{"bash", "read_file", "write_file", "edit_file", "multi_edit", "apply_patch", "grep", "glob", "bash_output", "bash_kill"}
}

func operandNames(tool string) []string {
	switch tool {
	case "bash":
		return []string{"command"}
	case "read_file", "write_file", "edit_file", "multi_edit":
		return []string{"file_path"}
	case "apply_patch":
		return []string{"input"}
	case "grep", "glob":
		return []string{"pattern", "path"}
	case "bash_output", "bash_kill":
		return []string{"call_id"}
	}
	return nil
}

func arguments() []argument {
	bash, read, write, edit := []string{"bash"}, []string{"read_file", "bash_output"}, []string{"write_file"}, []string{"edit_file"}
	return []argument{
		{"cwd", "cwd", bash, func(f *callFlags) any { return f.cwd }},
		{"timeout", "timeout", bash, func(f *callFlags) any { return f.timeout }},
		{"terminal", "terminal", bash, func(f *callFlags) any { return f.terminal }},
		{"stdin", "stdin", bash, func(*callFlags) any { return "open" }},
		{"background", "background", bash, func(f *callFlags) any { return f.background }},
		{"offset", "offset", read, func(f *callFlags) any { return f.offset }},
		{"limit", "limit", read, func(f *callFlags) any { return f.limit }},
		{"wait", "wait", []string{"bash_output"}, func(f *callFlags) any { return f.wait }},
		{"content", "content", write, func(f *callFlags) any { return f.content }},
		{"old", "old_string", edit, func(f *callFlags) any { return f.old }},
		{"new", "new_string", edit, func(f *callFlags) any { return f.replace }},
		{"all", "replace_all", edit, func(f *callFlags) any { return f.all }},
	}
}

func background(arguments json.RawMessage) bool {
	var a map[string]any
	if json.Unmarshal(arguments, &a) != nil {
		return false
	}
	for _, name := range []string{"background", "run_in_background", "is_background"} {
		if a[name] == true {
			return true
		}
	}
	return false
}

// build makes the JSON arguments of a call. from resolves paths.
func (f *callFlags) build(cmd *cobra.Command, tool string, operands []string, in io.Reader, from func(string) string) (json.RawMessage, error) {
	if cmd.Flags().Changed("arguments") {
		if len(operands) > 0 {
			return nil, errors.New("--arguments holds the whole call; leave the operand out")
		}
		var probe any
		if err := json.Unmarshal([]byte(f.raw), &probe); err != nil {
			return nil, fmt.Errorf("cannot read --arguments as JSON: %v; quote the whole object for the shell: '{\"command\": \"ls\"}'", err)
		}
		return json.RawMessage(f.raw), nil
	}
	names, args := operandNames(tool), make(map[string]any)
	if len(operands) > len(names) {
		return nil, fmt.Errorf("cannot tell which argument of %s %q is; the tools with operands are %s; for others use --arguments", tool, operands[len(names)], strings.Join(operandTools(), ", "))
	}
	for i, operand := range operands {
		if args[names[i]] = operand; strings.HasSuffix(names[i], "path") {
			args[names[i]] = from(operand)
		}
	}
	if f.content == "-" && cmd.Flags().Changed("content") {
		text, err := io.ReadAll(in)
		if err != nil {
			return nil, fmt.Errorf("cannot read standard input: %w", err)
		}
		f.content = string(text)
	}
	for _, a := range arguments() {
		if !cmd.Flags().Changed(a.flag) {
			continue
		}
		if !slices.Contains(a.tools, tool) {
			return nil, fmt.Errorf("--%s belongs to %s, not to %s", a.flag, strings.Join(a.tools, " and "), tool)
		}
		args[a.name] = a.value(f)
	}
	switch dir := from(f.cwd); {
	case dir == "":
	case tool == "bash":
		args["cwd"] = dir
	case (tool == "grep" || tool == "glob") && args["path"] == nil:
		args["path"] = dir
	}
	return json.Marshal(args)
}
