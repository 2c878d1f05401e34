package files

import (
	"encoding/json"

	"github.com/toold/toold/tools"
)

// multiEditor is edit_file with a list of edits.
type multiEditor struct{ editor }

type multiArguments struct {
	FilePath      string          `json:"file_path" alias:"path,filePath" required:"true"`
	Edits         []edit          `json:"edits" required:"true"`
	Description   json.RawMessage `json:"description" ignored:"true"`
	Justification json.RawMessage `json:"justification" ignored:"true"`
}

func (m multiEditor) Definition() tools.Definition {
	return tools.Definition{
		Name: "multi_edit",
		Description: "Makes several replacements in one file, in order, each in the result of the one before: all of them or none. " +
			"Each old_string must occur exactly once then, unless replace_all is set.",
		Parameters: json.RawMessage(`{"type":"object","properties":{` +
			`"file_path":{"type":"string","description":"The file, relative to the workspace or absolute. A leading ~/ is the home directory."},` +
			`"edits":{"type":"array","minItems":1,"maxItems":100,"items":{"type":"object","properties":{` +
			`"old_string":{"type":"string","minLength":1,"description":"The text to replace, white space included, with enough around it to occur once."},` +
			`"new_string":{"type":"string","description":"The text to put in its place; may be empty."},` +
			`"replace_all":{"type":"boolean","description":"Replace every occurrence."}},` +
			`"required":["old_string","new_string"],"additionalProperties":false}}},` +
			`"required":["file_path","edits"],"additionalProperties":false}`),
	}
}

func (m multiEditor) Build(args json.RawMessage) (tools.Invocation, error) {
	a, err := tools.Decode[multiArguments](args)
	if err != nil {
		return nil, err
	}
	edits, err := editArguments{Edits: append([]edit{}, a.Edits...)}.list()
	if err != nil {
		return nil, err
	}
	return m.build(a.FilePath, edits)
}
