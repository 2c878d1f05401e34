package files

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/toold/toold/policy"
	"github.com/toold/toold/tools"
)

type writer struct{ base }

type writeArguments struct {
	FilePath      string          `json:"file_path" alias:"path" required:"true"`
	Content       string          `json:"content" alias:"file_text" required:"true"`
	Description   json.RawMessage `json:"description" ignored:"true"`
	Justification json.RawMessage `json:"justification" ignored:"true"`
}

func (w writer) Definition() tools.Definition {
	return tools.Definition{
		Name: "write_file",
		Description: "Writes a text file, atomically. Missing directories are created. " +
			"An existing file is replaced and keeps its mode, owner and attributes; a symbolic link is kept and its target is written; other hard links keep the old content.",
		Parameters: json.RawMessage(`{"type":"object","properties":{` +
			`"file_path":{"type":"string","description":"The file, relative to the workspace or absolute. A leading ~/ is the home directory."},` +
			`"content":{"type":"string","description":"The whole new content, written byte for byte."}},` +
			`"required":["file_path","content"],"additionalProperties":false}`),
	}
}

func (w writer) Build(args json.RawMessage) (tools.Invocation, error) {
	a, err := tools.Decode[writeArguments](args)
	if err != nil {
		return nil, err
	}
	file, err := w.o.target(a.FilePath)
	if err != nil {
		return nil, err
	}
	p := step{
		file: file, fresh: true,
		compute: func(file target, _ []byte) (made, error) {
			return made{after: []byte(a.Content), done: fmt.Sprintf("Wrote %s to %s", plural(len(a.Content), "byte"), file.name())}, nil
		},
	}
	c := &change{
		o: w.o, busy: w.busy, verb: "Write " + plural(len(a.Content), "byte") + " to",
		effects: []policy.Effect{file.effect(policy.Write)},
	}
	// The result's diff shows the old content, so it is read as well.
	if _, err := os.Lstat(file.canonical); errors.Is(err, fs.ErrNotExist) {
		p.unread = true
	} else {
		c.effects = append(c.effects, file.effect(policy.Read))
	}
	c.steps = []step{p}
	return c, nil
}
