package files

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/toold/toold/policy"
	"github.com/toold/toold/tools"
)

// editor is the tool edit_file.
type editor struct {
	o    Options
	busy *locks
}

type editArguments struct {
	FilePath      string          `json:"file_path" alias:"path" required:"true"`
	OldString     string          `json:"old_string" alias:"old_str" required:"true"`
	NewString     string          `json:"new_string" alias:"new_str" required:"true"`
	ReplaceAll    bool            `json:"replace_all"`
	Description   json.RawMessage `json:"description" ignored:"true"`
	Justification json.RawMessage `json:"justification" ignored:"true"`
}

func (e editor) Definition() tools.Definition {
	return tools.Definition{
		Name: "edit_file",
		Description: "Replaces text in a file, at once: all of it or nothing. old_string must occur exactly once unless replace_all is set. " +
			"Only the replaced bytes change; line endings are those of the file (a newline in old_string matches CRLF as well).",
		Parameters: json.RawMessage(`{"type":"object","properties":{` +
			`"file_path":{"type":"string","description":"The file, relative to the workspace or absolute. A leading ~/ is the home directory."},` +
			`"old_string":{"type":"string","minLength":1,"description":"The text to replace, white space included, with enough around it to occur once."},` +
			`"new_string":{"type":"string","description":"The text to put in its place; may be empty."},` +
			`"replace_all":{"type":"boolean","description":"Replace every occurrence."}},` +
			`"required":["file_path","old_string","new_string"],"additionalProperties":false}`),
	}
}

func (e editor) Build(args json.RawMessage) (tools.Invocation, error) {
	a, err := tools.Decode[editArguments](args)
	if err != nil {
		return nil, err
	}
	switch {
	case a.OldString == "":
		return nil, problem("old_string", "empty; name the text to replace, or use write_file to write a whole file")
	case a.OldString == a.NewString:
		return nil, problem("new_string", "the same as old_string; nothing would change")
	}
	file, err := e.o.target(a.FilePath)
	if err != nil {
		return nil, err
	}
	return &change{
		o: e.o, busy: e.busy, file: file, verb: "Edit",
		effects: []policy.Effect{file.effect(policy.Read), file.effect(policy.Write)},
		compute: func(file target, before []byte) (made, error) {
			return a.edit(file, before, e.o.MaxWrite)
		},
	}, nil
}

// edit replaces the text in content and says what was done.
func (a editArguments) edit(file target, content []byte, most int64) (made, error) {
	if why := notText(content, true); why != "" {
		return made{}, problem("file_path", "cannot edit %s: %s", file.name(), why)
	}
	f := newFinder(content, a.OldString)
	places, err := a.places(f, file, content)
	if err != nil {
		return made{}, err
	}
	// The largest growth: every newline of the new text becomes two bytes.
	growth := len(a.NewString) + strings.Count(a.NewString, "\n") - len(a.OldString)
	if int64(len(content))+int64(len(places))*int64(growth) > most {
		return made{}, problem("new_string", "nothing changed: %s would make %s larger than the %d bytes that can be written", plural(len(places), "replacement"), file.name(), most)
	}
	verbatim := strings.Contains(a.OldString+a.NewString, "\r")
	return made{
		after:        replaceAt(content, places, a.NewString, !verbatim),
		done:         fmt.Sprintf("Edited %s: %s", file.name(), plural(len(places), "replacement")),
		replacements: int64(len(places)),
	}, nil
}

// mostPlaces bounds the memory that one edit can ask for.
const mostPlaces = 1 << 20

// places finds what is to be replaced.
func (a editArguments) places(f finder, file target, content []byte) ([]place, error) {
	places := f.find(a.OldString, mostPlaces, !a.ReplaceAll)
	switch {
	case len(places) == 0:
		return nil, problem("old_string", "nothing changed: old_string does not occur in %s; %s", file.name(), notFound(content, a.OldString))
	case len(places) == mostPlaces:
		return nil, problem("old_string", "nothing changed: old_string occurs %d times or more in %s, which is too often", mostPlaces, file.name())
	case len(places) == 1 || a.ReplaceAll:
		return places, nil
	}
	return nil, problem("old_string", "nothing changed: old_string occurs %d times in %s, on lines %s. Send more of the text around the one that is meant, or set replace_all",
		len(places), file.name(), lineList(content, places))
}

// lineList names the lines of the first few places.
func lineList(content []byte, places []place) string {
	const most = 10
	var list []string
	line, last := 1, 0
	for i, p := range places {
		if i == most {
			list = append(list, "…")
			break
		}
		line += bytes.Count(content[last:p.start], []byte("\n"))
		last = p.start
		list = append(list, fmt.Sprint(line))
	}
	return strings.Join(list, ", ")
}
