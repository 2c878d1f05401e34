package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

// argument is a call argument that has a flag. It is sent only if the flag is given.
type argument struct {
	flag, name string
	tools      []string
	zero       any // zero value of its type
	usage      string
}

var arguments = []argument{
	{"cwd", "cwd", []string{"bash"}, "", "bash: `directory` to run in; default: the current one"},
	{"timeout", "timeout", []string{"bash"}, int64(0), "bash: `milliseconds` after which the command is stopped"},
	{"terminal", "terminal", []string{"bash"}, "", "bash: split, single or off; default: off where the output goes to no terminal"},
	{"stdin", "stdin", []string{"bash"}, false, "bash: send this program's standard input to the command; exec does so with a pipe or a file"},
	{"background", "background", []string{"bash"}, false, "bash: let it run on in the running daemon; print its id"},
	{"offset", "offset", []string{"read_file", "bash_output"}, int64(0), "read_file: first `line`, counted from 1; bash_output: first byte, from 0"},
	{"limit", "limit", []string{"read_file", "bash_output"}, int64(0), "read_file: number of `lines`; bash_output: of bytes"},
	{"wait", "wait", []string{"bash_output"}, int64(0), "bash_output: `milliseconds` to wait for output, or for the end"},
	{"content", "content", []string{"write_file"}, "", "write_file: the new content; - takes standard input"},
	{"old", "old_string", []string{"edit_file"}, "", "edit_file: the text to replace"},
	{"new", "new_string", []string{"edit_file"}, "", "edit_file: the text to put there"},
	{"all", "replace_all", []string{"edit_file"}, false, "edit_file: replace every match"},
}

// operandsOf lists tools with the arguments that operands set, in order. The first word is the tool's name.
var operandsOf = [][]string{
	{"bash", "command"},
	{"read_file", "file_path"},
	{"write_file", "file_path"},
	{"edit_file", "file_path"},
	{"multi_edit", "file_path"},
	{"apply_patch", "input"},
	{"grep", "pattern", "path"},
	{"glob", "pattern", "path"},
	{"bash_output", "call_id"},
	{"bash_kill", "call_id"},
}

func operandTools() (names []string) {
	for _, tool := range operandsOf {
		names = append(names, tool[0])
	}
	return names
}

func operandNames(tool string) []string {
	if i := slices.Index(operandTools(), tool); i >= 0 {
		return operandsOf[i][1:]
	}
	return nil
}

func addArguments(cmd *cobra.Command) {
	cmd.Flags().String("arguments", "", "all arguments as one `JSON` object")
	addArgumentsOf(cmd, operandTools()...)
}

func addArgumentsOf(cmd *cobra.Command, tools ...string) {
	for _, a := range arguments {
		if !slices.Contains(tools, a.tools[0]) {
			continue
		}
		switch zero := a.zero.(type) {
		case string:
			cmd.Flags().String(a.flag, zero, a.usage)
		case int64:
			cmd.Flags().Int64(a.flag, zero, a.usage)
		case bool:
			cmd.Flags().Bool(a.flag, zero, a.usage)
		}
	}
}

func (a argument) value(cmd *cobra.Command) any {
	switch v := cmd.Flags().Lookup(a.flag).Value; {
	case a.flag == "stdin":
		return map[string]string{"true": "open", "false": "closed"}[v.String()]
	case v.Type() == "string":
		return v.String()
	default:
		return json.RawMessage(v.String()) // a number or boolean
	}
}

// build makes the JSON arguments of a call, with paths as a person typed them.
func build(cmd *cobra.Command, tool string, operands []string, in io.Reader) (json.RawMessage, error) {
	if cmd.Flags().Changed("arguments") {
		return rawArguments(cmd, operands)
	}
	names, args := operandNames(tool), make(map[string]any)
	if len(operands) > len(names) {
		return nil, fmt.Errorf("cannot tell which argument of %s %q is; the tools with operands are %s; for others use --arguments", tool, operands[len(names)], strings.Join(operandTools(), ", "))
	}
	for i, operand := range operands {
		args[names[i]] = operand
	}
	for _, a := range arguments {
		if !cmd.Flags().Changed(a.flag) {
			continue
		}
		if !slices.Contains(a.tools, tool) {
			return nil, fmt.Errorf("--%s belongs to %s, not to %s", a.flag, strings.Join(a.tools, " and "), tool)
		}
		args[a.name] = a.value(cmd)
	}
	if args["content"] == "-" {
		text, err := io.ReadAll(in)
		if err != nil {
			return nil, fmt.Errorf("cannot read standard input: %w", err)
		}
		args["content"] = string(text)
	}
	return encode(args)
}

var errNotUTF8 = errors.New("the call is not valid UTF-8, and only that can be sent; let a command write or name other bytes: toold call bash \"cat \\$'a\\\\xff'\"")

// encode rejects invalid UTF-8, which encoding/json would replace.
func encode(args map[string]any) (json.RawMessage, error) {
	for _, value := range args {
		if text, ok := value.(string); ok && !utf8.ValidString(text) {
			return nil, errNotUTF8
		}
	}
	return json.Marshal(args)
}

func rawArguments(cmd *cobra.Command, operands []string) (json.RawMessage, error) {
	if len(operands) > 0 {
		return nil, errors.New("--arguments holds the whole call; leave the operand out")
	}
	raw, _ := cmd.Flags().GetString("arguments")
	if !utf8.ValidString(raw) {
		return nil, errNotUTF8
	}
	var probe any
	if err := json.Unmarshal([]byte(raw), &probe); err != nil {
		return nil, fmt.Errorf("cannot read --arguments as JSON: %v; quote the whole object for the shell: '{\"command\": \"ls\"}'", err)
	}
	return json.RawMessage(raw), nil
}
