package files

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/toold/toold/policy"
	"github.com/toold/toold/tools"
)

type patcher struct{ base }

type patchArguments struct {
	Input         *string         `json:"input" alias:"patch,patchText"`
	Operation     *operation      `json:"operation"`
	Description   json.RawMessage `json:"description" ignored:"true"`
	Justification json.RawMessage `json:"justification" ignored:"true"`
}

// operation is a patch of one file without header.
type operation struct {
	Type string  `json:"type" enum:"create_file|update_file|delete_file" required:"true"`
	Path string  `json:"path" required:"true"`
	Diff *string `json:"diff"`
}

const mostFiles = 100

func (p patcher) Definition() tools.Definition {
	return tools.Definition{
		Name: "apply_patch",
		Description: "Changes several text files atomically. A patch begins with \"*** Begin Patch\" and ends with \"*** End Patch\"; " +
			"between them come \"*** Add File: PATH\" and its lines prefixed by +, \"*** Delete File: PATH\", or \"*** Update File: PATH\", optionally \"*** Move to: PATH\", and hunks. " +
			"A hunk begins with @@, or with @@ and a line of the file above the change, and contains unchanged lines prefixed by a space, removed ones by -, added ones by +. " +
			"The lines of a hunk must occur once; \"*** End of File\" after a hunk says that it is at the end.",
		Parameters: json.RawMessage(`{"type":"object","properties":{` +
			`"input":{"type":"string","description":"The whole patch. Paths are relative to the workspace or absolute."}},` +
			`"required":["input"],"additionalProperties":false}`),
	}
}

func (a patchArguments) sections() ([]section, error) {
	switch {
	case a.Input != nil && a.Operation != nil:
		return nil, problem("operation", "given beside input; send one of them")
	case a.Input != nil:
		return parsePatch("input", *a.Input)
	case a.Operation == nil:
		return nil, problem("input", "missing; it is required")
	}
	s, err := a.Operation.section()
	return []section{s}, err
}

func (o operation) section() (s section, err error) {
	s.path = o.Path
	if o.Type == "delete_file" {
		if s.header = deleteFile; o.Diff != nil && *o.Diff != "" {
			err = problem("operation.diff", "given to delete a file; leave it out")
		}
		return s, err
	}
	if o.Diff == nil {
		return s, problem("operation.diff", "missing; it is required")
	}
	p := newPatchParser("operation.diff", strings.TrimSuffix(*o.Diff, "\n"))
	if len(p.lines) == 1 && p.lines[0] == "" {
		p.lines = nil
	}
	if o.Type == "create_file" {
		s.header = addFile
		s.text, err = p.added()
	} else {
		s.header = updateFile
		s.hunks, err = p.hunks(false)
	}
	if err == nil && !p.ended() {
		err = p.fail("%s does not belong in the patch of one file", quote(p.lines[p.at:p.at+1]))
	}
	return s, err
}

func (p patcher) Build(args json.RawMessage) (tools.Invocation, error) {
	a, err := tools.Decode[patchArguments](args)
	if err != nil {
		return nil, err
	}
	sections, err := a.sections()
	if err != nil {
		return nil, err
	}
	if len(sections) > mostFiles {
		return nil, problem("input", "it changes %d files; at most %d can be changed in one call", len(sections), mostFiles)
	}
	c := &change{o: p.o, busy: p.busy, verb: "Patch", done: patchedFiles}
	for _, s := range sections {
		one, err := p.step(s)
		if err != nil {
			return nil, err
		}
		c.steps = append(c.steps, one)
		c.effects = append(c.effects, one.effects()...)
	}
	return c, distinct(c.steps)
}

func (p patcher) step(s section) (one step, err error) {
	if one.file, err = p.o.target(s.path); err != nil {
		return one, inPatch(s.path, err)
	}
	if s.to != "" {
		if one.to, err = p.o.target(s.to); err != nil {
			return one, inPatch(s.to, err)
		}
	}
	switch s.header {
	case addFile:
		one.fresh, one.absent = true, true
		text := strings.Join(append(s.text, ""), "\n")
		one.compute = func(target, []byte) (made, error) { return made{after: []byte(text)}, nil }
	case deleteFile:
		one.remove = true
	default:
		one.compute = func(file target, before []byte) (made, error) {
			if len(s.hunks) == 0 { // only moved
				return made{after: before}, nil
			}
			return applyHunks(s.hunks, file, before)
		}
	}
	return one, nil
}

func inPatch(path string, err error) error {
	return problem("input", "the path %q of the patch: %v", path, err)
}

// effects lists the effects on one file. A new file is not read.
func (p step) effects() []policy.Effect {
	var list []policy.Effect
	if !p.absent {
		list = append(list, p.file.effect(policy.Read))
	}
	for _, file := range p.paths() {
		list = append(list, file.effect(policy.Write))
	}
	return list
}

// distinct refuses two steps that write one file.
func distinct(steps []step) error {
	seen := map[string]bool{}
	for _, p := range steps {
		for _, file := range p.paths() {
			if seen[file.canonical] {
				return problem("input", "the patch names %s twice; put all changes of a file into one section", file.name())
			}
			seen[file.canonical] = true
		}
	}
	return nil
}

func patchedFiles(states []state) string {
	lines := []string{"Applied the patch to " + plural(len(states), "file") + "."}
	for _, s := range states {
		switch did := s.did(); did.Operation {
		case "create":
			lines = append(lines, "A "+s.file.name())
		case "remove":
			lines = append(lines, "D "+s.file.name())
		case "move":
			lines = append(lines, fmt.Sprintf("R %s -> %s", s.file.name(), s.to.name()))
		default:
			lines = append(lines, "M "+s.file.name())
		}
	}
	return strings.Join(lines, "\n")
}
