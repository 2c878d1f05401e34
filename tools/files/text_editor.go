package files

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/toold/toold/tools"
)

// textEditor is str_replace_based_edit_tool, which Anthropic's models know.
type textEditor struct{ base }

type textEditorArguments struct {
	Command    string  `json:"command" enum:"view|create|str_replace|insert" required:"true"`
	Path       string  `json:"path" required:"true"`
	ViewRange  []int64 `json:"view_range"`
	FileText   *string `json:"file_text"`
	OldStr     *string `json:"old_str"`
	NewStr     *string `json:"new_str"`
	InsertLine *int64  `json:"insert_line"`
	InsertText *string `json:"insert_text"`
}

func (a textEditorArguments) given() map[string]bool {
	return map[string]bool{
		"view_range": a.ViewRange != nil, "file_text": a.FileText != nil, "old_str": a.OldStr != nil,
		"new_str": a.NewStr != nil, "insert_line": a.InsertLine != nil, "insert_text": a.InsertText != nil,
	}
}

// check refuses arguments that a command does not take, and missing ones.
func (a textEditorArguments) check(needs []string, takes ...string) error {
	given := a.given()
	for _, name := range needs {
		if !given[name] {
			return problem(name, "missing; %s needs it", a.Command)
		}
		delete(given, name)
	}
	for _, name := range takes {
		delete(given, name)
	}
	for _, name := range []string{"view_range", "file_text", "old_str", "new_str", "insert_line", "insert_text"} {
		if given[name] {
			return problem(name, "%s does not take it", a.Command)
		}
	}
	return nil
}

// Definition describes the tool; models know it.
func (t textEditor) Definition() tools.Definition {
	return tools.Definition{
		Name: "str_replace_based_edit_tool", Description: "Views, creates and edits text files.", Parameters: json.RawMessage(`{"type":"object"}`), Hidden: true,
	}
}

// Build builds the call of the corresponding tool.
func (t textEditor) Build(args json.RawMessage) (tools.Invocation, error) {
	a, err := tools.Decode[textEditorArguments](args)
	if err != nil {
		return nil, err
	}
	switch a.Command {
	case "view":
		return t.view(a)
	case "create":
		if err := a.check([]string{"file_text"}); err != nil {
			return nil, err
		}
		return build(writer(t), map[string]any{"file_path": a.Path, "content": *a.FileText})
	case "insert":
		if err := a.check([]string{"insert_line", "insert_text"}); err != nil {
			return nil, err
		}
		return t.insert(a.Path, *a.InsertLine, *a.InsertText)
	}
	if err := a.check([]string{"old_str"}, "new_str"); err != nil {
		return nil, err
	}
	replacement := ""
	if a.NewStr != nil {
		replacement = *a.NewStr
	}
	return build(editor(t), map[string]any{"file_path": a.Path, "old_string": *a.OldStr, "new_string": replacement})
}

func (t textEditor) view(a textEditorArguments) (tools.Invocation, error) {
	if err := a.check(nil, "view_range"); err != nil {
		return nil, err
	}
	dir, err := t.o.resolve(a.Path)
	if err != nil {
		return nil, err
	}
	if info, err := os.Stat(dir.canonical); err == nil && info.IsDir() && a.ViewRange == nil {
		return build(globber(t), map[string]any{"path": a.Path, "pattern": "*"})
	}
	read := map[string]any{"file_path": a.Path, "numbered": true}
	if a.ViewRange == nil {
		return build(reader(t), read)
	}
	if len(a.ViewRange) != 2 || a.ViewRange[0] < 1 || a.ViewRange[1] != -1 && a.ViewRange[1] < a.ViewRange[0] {
		return nil, problem("view_range", "%v: expected the first line, from 1, and the last one, -1 for the end", a.ViewRange)
	}
	read["offset"] = a.ViewRange[0]
	if a.ViewRange[1] != -1 {
		read["limit"] = a.ViewRange[1] - a.ViewRange[0] + 1
	}
	return build(reader(t), read)
}

func build(t tools.Tool, args map[string]any) (tools.Invocation, error) {
	text, err := json.Marshal(args)
	if err != nil {
		return nil, fmt.Errorf("cannot encode arguments: %w", err)
	}
	return t.Build(text)
}

// insert inserts text after a line; 0 is the beginning.
func (t textEditor) insert(path string, line int64, text string) (tools.Invocation, error) {
	file, err := t.o.target(path)
	if err != nil {
		return nil, err
	}
	if line < 0 || text == "" {
		return nil, problem("insert_line", "insert_line must not be negative and insert_text not empty")
	}
	return t.o.edit(t.busy, file, func(file target, before []byte) (made, error) {
		if why := notText(before, true); why != "" {
			return made{}, problem("path", "cannot edit %s: %s", file.name(), why)
		}
		if have := countLines(before); line > have {
			return made{}, problem("insert_line", "nothing changed: %s has %s, so nothing can be inserted after line %d", file.name(), plural(have, "line"), line)
		}
		at := 0
		for range line {
			if end := bytes.IndexByte(before[at:], '\n'); end >= 0 {
				at += end + 1
			} else {
				at = len(before)
			}
		}
		return made{after: inserted(before, at, text), replacements: 1, done: fmt.Sprintf("Inserted %s into %s", plural(countLines([]byte(text)), "line"), file.name())}, nil
	}), nil
}

// inserted inserts text as separate lines.
func inserted(before []byte, at int, text string) []byte {
	ending := "\n"
	if bytes.Contains(before, []byte("\r\n")) && !strings.Contains(text, "\r") {
		ending = "\r\n"
		text = strings.ReplaceAll(text, "\n", ending)
	}
	switch open := at > 0 && before[at-1] != '\n'; {
	case open:
		text = ending + strings.TrimSuffix(text, ending)
	case !strings.HasSuffix(text, "\n"):
		text += ending
	}
	return bytes.Join([][]byte{before[:at], before[at:]}, []byte(text))
}
