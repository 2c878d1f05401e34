package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/toold/toold/policy"
	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/argument"
)

type writeArguments struct {
	FilePath string `json:"file_path" alias:"path" required:"true"`
	Content  string `json:"content" alias:"file_text" required:"true"`
	argument.Ignored
}

func writeDefinition() tools.Definition {
	return tools.Definition{
		Name: "write_file",
		Description: "Writes a text file, atomically. Missing directories are created. " +
			"An existing file is replaced and keeps its mode, owner and attributes; a symbolic link is kept and its target is written; other hard links keep the old content.",
		Parameters: argument.Schema(`"file_path","content"`, pathSchema+
			`"content":{"type":"string","description":"The whole new content, written byte for byte."}`),
	}
}

func (b base) write(a writeArguments) (tools.Invocation, error) {
	file, err := b.o.target(a.FilePath)
	if err != nil {
		return nil, err
	}
	p := step{
		file: file, fresh: true,
		compute: func(_ context.Context, file target, _ []byte) (made, error) {
			return made{after: []byte(a.Content), done: fmt.Sprintf("Wrote %s to %s", plural(len(a.Content), "byte"), file.name())}, nil
		},
	}
	c := &change{
		o: b.o, busy: b.busy, verb: "Write " + plural(len(a.Content), "byte") + " to",
		effects: []policy.Effect{file.effect(policy.Write)},
	}
	// The diff in the result shows the old content, so the file is read as well.
	isHidden := b.o.Profile.CanRead(file.canonical) != nil // no decision depends on whether it exists
	if _, err := os.Lstat(file.canonical); errors.Is(err, fs.ErrNotExist) && !isHidden {
		p.unread = true
	} else {
		c.effects = append(c.effects, file.effect(policy.Read))
	}
	c.steps = []step{p}
	return c, nil
}
