package files

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/toold/toold/tools"
)

// textEditorArguments are the arguments of str_replace_based_edit_tool, which Anthropic's models are trained on.
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

func (a textEditorArguments) check(needs, takes []string) error {
	for _, argument := range []struct {
		name  string
		given bool
	}{
		{"view_range", a.ViewRange != nil},
		{"file_text", a.FileText != nil},
		{"old_str", a.OldStr != nil},
		{"new_str", a.NewStr != nil},
		{"insert_line", a.InsertLine != nil},
		{"insert_text", a.InsertText != nil},
	} {
		needed := slices.Contains(needs, argument.name)
		switch {
		case needed && !argument.given:
			return problem(argument.name, "missing; %s needs it", a.Command)
		case argument.given && !needed && !slices.Contains(takes, argument.name):
			return problem(argument.name, "%s does not take it", a.Command)
		}
	}
	return nil
}

func textEditorDefinition() tools.Definition {
	return tools.Definition{
		Name: "str_replace_based_edit_tool", Description: "Views, creates and edits text files.", Parameters: json.RawMessage(`{"type":"object"}`), Hidden: true,
	}
}

func (b base) textEdit(a textEditorArguments) (tools.Invocation, error) {
	use := map[string]struct {
		needs, takes []string
		build        func(textEditorArguments) (tools.Invocation, error)
	}{
		"view":        {nil, []string{"view_range"}, b.view},
		"create":      {[]string{"file_text"}, nil, b.create},
		"insert":      {[]string{"insert_line", "insert_text"}, nil, b.insert},
		"str_replace": {[]string{"old_str"}, []string{"new_str"}, b.replace},
	}[a.Command]
	if err := a.check(use.needs, use.takes); err != nil {
		return nil, err
	}
	return use.build(a)
}

func (b base) create(a textEditorArguments) (tools.Invocation, error) {
	return b.write(writeArguments{FilePath: a.Path, Content: *a.FileText})
}

func (b base) replace(a textEditorArguments) (tools.Invocation, error) {
	return b.edit(editArguments{FilePath: a.Path, OldString: a.OldStr, NewString: cmp.Or(a.NewStr, new(string))})
}

func (b base) view(a textEditorArguments) (tools.Invocation, error) {
	dir, err := b.o.resolve(a.Path)
	if err != nil {
		return nil, err
	}
	whole := a.ViewRange == nil && b.o.Profile.CanRead(dir.canonical) == nil
	if info, err := os.Stat(dir.canonical); whole && err == nil && info.IsDir() {
		return b.glob(globArguments{Path: a.Path, Pattern: "*"})
	}
	read := readArguments{FilePath: a.Path, Numbered: true}
	if a.ViewRange == nil {
		return b.read(read)
	}
	isRange := len(a.ViewRange) == 2 && a.ViewRange[0] >= 1
	if !isRange || a.ViewRange[1] != -1 && a.ViewRange[1] < a.ViewRange[0] {
		return nil, problem("view_range", "%v: expected the first line, from 1, and the last one, -1 for the end", a.ViewRange)
	}
	read.Offset = &a.ViewRange[0]
	if a.ViewRange[1] != -1 {
		limit := a.ViewRange[1] - a.ViewRange[0] + 1
		read.Limit = &limit
	}
	return b.read(read)
}

// insert inserts text after a line; 0 is the beginning.
func (b base) insert(a textEditorArguments) (tools.Invocation, error) {
	line, text := *a.InsertLine, *a.InsertText
	file, err := b.o.target(a.Path)
	if err != nil {
		return nil, err
	}
	if line < 0 || text == "" {
		return nil, problem("insert_line", "insert_line must not be negative and insert_text not empty")
	}
	return b.editing(file, func(_ context.Context, file target, before []byte) (made, error) {
		if why := notText(before, true); why != "" {
			return made{}, problem("path", "cannot edit %s: %s", file.name(), why)
		}
		lines := bytes.TrimPrefix(before, []byte(bom))
		if have := countLines(lines); line > have {
			return made{}, problem("insert_line", "nothing changed: %s has %s, so nothing can be inserted after line %d", file.name(), plural(have, "line"), line)
		}
		at := 0
		for range line {
			if end := bytes.IndexByte(lines[at:], '\n'); end >= 0 {
				at += end + 1
			} else {
				at = len(lines)
			}
		}
		after := slices.Concat(before[:len(before)-len(lines)], inserted(lines, at, text))
		return made{after: after, replacements: 1, done: fmt.Sprintf("Inserted %s into %s", plural(countLines([]byte(text)), "line"), file.name())}, nil
	}), nil
}

// inserted inserts lines with the ending of their neighbours.
func inserted(before []byte, at int, text string) []byte {
	ending := "\n"
	if e := (lineEndings{content: before, next: -1}); e.crlf(extent{at, at}) {
		ending = "\r\n"
	}
	if !strings.Contains(text, "\r") {
		text = strings.ReplaceAll(text, "\n", ending)
	}
	line, isEnded := strings.CutSuffix(text, "\n")
	switch {
	case at > 0 && at == len(before) && before[at-1] != '\n':
		if isEnded {
			line = strings.TrimSuffix(line, "\r")
		}
		text = ending + line
	case !isEnded:
		text += ending
	}
	return bytes.Join([][]byte{before[:at], before[at:]}, []byte(text))
}
