package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
)

// callFlags are the arguments of a call as people write them on a command line.
// Only those that were given are sent, so that the tool's own checks and
// defaults hold.
type callFlags struct {
	raw string // --arguments

	cwd, terminal         string
	timeout               int64
	stdin, background     bool
	offset, limit         int64
	content, old, replace string
	all                   bool
}

func (f *callFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.raw, "arguments", "", "all arguments as one `JSON` object")
	f.registerBash(cmd)
	flags.Int64Var(&f.offset, "offset", 0, "read_file: first `line`, counted from 1")
	flags.Int64Var(&f.limit, "limit", 0, "read_file: number of `lines`")
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

// argument is where a flag of the command line goes.
type argument struct {
	flag, name, tool string
	value            func(*callFlags) any
}

func arguments() []argument {
	const bash, read, write, edit = "bash", "read_file", "write_file", "edit_file"
	return []argument{
		{"cwd", "cwd", bash, func(f *callFlags) any { return f.cwd }},
		{"timeout", "timeout", bash, func(f *callFlags) any { return f.timeout }},
		{"terminal", "terminal", bash, func(f *callFlags) any { return f.terminal }},
		{"stdin", "stdin", bash, func(*callFlags) any { return "open" }},
		{"background", "background", bash, func(f *callFlags) any { return f.background }},
		{"offset", "offset", read, func(f *callFlags) any { return f.offset }},
		{"limit", "limit", read, func(f *callFlags) any { return f.limit }},
		{"content", "content", write, func(f *callFlags) any { return f.content }},
		{"old", "old_string", edit, func(f *callFlags) any { return f.old }},
		{"new", "new_string", edit, func(f *callFlags) any { return f.replace }},
		{"all", "replace_all", edit, func(f *callFlags) any { return f.all }},
	}
}

// background tells whether arguments ask that a call runs on after its return.
// Whether they are right is for the tool to say.
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

// build makes the JSON object of a call from TOOL, the operand and the flags. from makes
// the paths that a person gave those that the tool wants.
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
	args := make(map[string]any)
	if len(operands) > 0 {
		name, ok := map[string]string{"bash": "command", "read_file": "file_path", "write_file": "file_path", "edit_file": "file_path"}[tool]
		if !ok {
			return nil, fmt.Errorf("cannot tell which argument of %s %q is; the tools with an operand are bash, read_file, write_file and edit_file; for others use --arguments", tool, operands[0])
		}
		if args[name] = operands[0]; name == "file_path" {
			args[name] = from(operands[0])
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
		if a.tool != tool {
			return nil, fmt.Errorf("--%s belongs to %s, not to %s", a.flag, a.tool, tool)
		}
		args[a.name] = a.value(f)
	}
	if dir := from(f.cwd); tool == "bash" && dir != "" {
		args["cwd"] = dir
	}
	return json.Marshal(args)
}
