package files

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/toold/toold/policy"
	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/argument"
)

type editArguments struct {
	FilePath   string  `json:"file_path" alias:"path,filePath" required:"true"`
	OldString  *string `json:"old_string" alias:"old_str,oldString"`
	NewString  *string `json:"new_string" alias:"new_str,newString"`
	ReplaceAll *bool   `json:"replace_all" alias:"replaceAll"`
	Expected   *int64  `json:"expected_replacements"`
	Edits      []edit  `json:"edits"`
	argument.Ignored
}

type edit struct {
	OldString  string `json:"old_string" alias:"old_str,oldString" required:"true"`
	NewString  string `json:"new_string" alias:"new_str,newString" required:"true"`
	ReplaceAll bool   `json:"replace_all" alias:"replaceAll"`
	expected   int64  // number of replacements; 0 = one, or any number with ReplaceAll
}

const mostEdits = 100 // limits the time of one call

func (a editArguments) list() ([]edit, error) {
	if a.Edits != nil {
		return a.several()
	}
	one := edit{ReplaceAll: a.ReplaceAll != nil && *a.ReplaceAll}
	switch {
	case a.OldString == nil:
		return nil, problem("old_string", "missing; it is required")
	case a.NewString == nil:
		return nil, problem("new_string", "missing; it is required")
	case a.Expected != nil && *a.Expected < 1:
		return nil, problem("expected_replacements", "%d is less than 1", *a.Expected)
	case a.Expected != nil:
		one.expected, one.ReplaceAll = *a.Expected, one.ReplaceAll || *a.Expected > 1
	}
	one.OldString, one.NewString = *a.OldString, *a.NewString
	return []edit{one}, nil
}

func (a editArguments) several() ([]edit, error) {
	hasText := a.OldString != nil || a.NewString != nil
	switch {
	case hasText || a.ReplaceAll != nil || a.Expected != nil:
		return nil, problem("edits", "given beside old_string, new_string, replace_all or expected_replacements; put all edits into edits")
	case len(a.Edits) > mostEdits:
		return nil, problem("edits", "%d edits; at most %d can be made in one call", len(a.Edits), mostEdits)
	case len(a.Edits) == 0:
		return nil, problem("edits", "empty; name at least one edit")
	}
	return a.Edits, nil
}

const editSchema = `"old_string":{"type":"string","minLength":1,"description":"The text to replace, white space included, with enough around it to occur once."},` +
	`"new_string":{"type":"string","description":"The text to put in its place; may be empty."},` +
	`"replace_all":{"type":"boolean","description":"Replace every occurrence."}`

func editDefinition() tools.Definition {
	return tools.Definition{
		Name: "edit_file",
		Description: "Replaces text in a file, atomically. old_string must occur exactly once unless replace_all is set. " +
			"Only the replaced bytes change; line endings are those of the file (a newline in old_string matches CRLF as well).",
		Parameters: argument.Schema(`"file_path","old_string","new_string"`, pathSchema+editSchema),
	}
}

func (b base) edit(a editArguments) (tools.Invocation, error) {
	edits, err := a.list()
	if err != nil {
		return nil, err
	}
	return b.edits(a.FilePath, edits)
}

func (b base) edits(path string, edits []edit) (tools.Invocation, error) {
	for i, one := range edits {
		if err := one.check(); err != nil {
			return nil, numberEdit(err, i, len(edits))
		}
	}
	file, err := b.o.target(path)
	if err != nil {
		return nil, err
	}
	c := b.editing(file, func(ctx context.Context, file target, before []byte) (made, error) {
		return makeEdits(ctx, edits, file, before, b.o.MaxWrite)
	})
	c.steps[0].grows = slices.ContainsFunc(edits, func(e edit) bool { return e.ReplaceAll && len(e.NewString) > len(e.OldString) })
	return c, nil
}

func (b base) editing(file target, compute func(context.Context, target, []byte) (made, error)) *change {
	return &change{
		o: b.o, busy: b.busy, verb: "Edit", steps: []step{{file: file, compute: compute}},
		effects: []policy.Effect{file.effect(policy.Read), file.effect(policy.Write)},
	}
}

func (a edit) check() error {
	switch {
	case a.OldString == "":
		return problem("old_string", "empty; name the text to replace, or use write_file to write a whole file")
	case a.OldString == a.NewString:
		return problem("new_string", "the same as old_string; nothing would change")
	}
	return nil
}

func numberEdit(err error, i, n int) error {
	var fault *argument.Error
	if n > 1 && errors.As(err, &fault) {
		return problem(fmt.Sprintf("edits[%d].%s", i, fault.Field), "edit %d of %d: %s", i+1, n, fault.Problem)
	}
	return err
}

func makeEdits(ctx context.Context, edits []edit, file target, content []byte, most int64) (made, error) {
	if why := notText(content, true); why != "" {
		return made{}, problem("file_path", "cannot edit %s: %s", file.name(), why)
	}
	m := made{after: content}
	for i, one := range edits {
		if ctx.Err() != nil {
			return made{}, ctx.Err()
		}
		after, n, err := one.apply(file, m.after, most)
		if err != nil {
			return made{}, numberEdit(err, i, len(edits))
		}
		m.after = after
		m.replacements += n
	}
	m.done = fmt.Sprintf("Edited %s: %s", file.name(), plural(m.replacements, "replacement"))
	return m, nil
}

func (a edit) apply(file target, content []byte, most int64) (after []byte, n int64, err error) {
	f := newFinder(content, a.OldString)
	spans, err := a.spans(f, file, content)
	if err != nil {
		return nil, 0, err
	}
	// At most, every newline becomes CRLF.
	growth := len(a.NewString) + strings.Count(a.NewString, "\n") - len(a.OldString)
	if int64(len(content))+int64(len(spans))*int64(growth) > most {
		return nil, 0, problem("new_string", "nothing changed: %s would make %s larger than the %d bytes that can be written", plural(len(spans), "replacement"), file.name(), most)
	}
	verbatim := strings.Contains(a.OldString+a.NewString, "\r")
	return replaceAt(content, spans, a.NewString, !verbatim), int64(len(spans)), nil
}

const maxSpans = 1 << 20 // limits the memory of one edit

func (a edit) spans(f finder, file target, content []byte) ([]extent, error) {
	spans := f.find(a.OldString, maxSpans, !a.ReplaceAll)
	switch {
	case len(spans) == 0:
		return nil, problem("old_string", "nothing changed: old_string does not occur in %s; %s", file.name(), notFound(content, a.OldString))
	case len(spans) == maxSpans:
		return nil, problem("old_string", "nothing changed: old_string occurs %d times or more in %s, which is too often", maxSpans, file.name())
	case a.expected > 0 && int64(len(spans)) != a.expected && a.ReplaceAll:
		return nil, problem("expected_replacements", "nothing changed: old_string occurs %d times in %s, on lines %s, and %s expected",
			len(spans), file.name(), lineList(content, spans), plural(a.expected, "replacement"))
	case len(spans) == 1 || a.ReplaceAll:
		return spans, nil
	}
	return nil, problem("old_string", "nothing changed: old_string occurs %d times in %s, on lines %s. Send more of the text around the one that is meant, or set replace_all",
		len(spans), file.name(), lineList(content, spans))
}

func lineList(content []byte, spans []extent) string {
	const most = 10
	var list []string
	line, last := 1, 0
	for i, p := range spans {
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

type multiArguments struct {
	FilePath string `json:"file_path" alias:"path,filePath" required:"true"`
	Edits    []edit `json:"edits" required:"true"`
	argument.Ignored
}

func multiDefinition() tools.Definition {
	return tools.Definition{
		Name: "multi_edit",
		Description: "Makes several replacements in one file, in order, each in the result of the one before: all of them or none. " +
			"Each old_string must occur exactly once then, unless replace_all is set.",
		Parameters: argument.Schema(`"file_path","edits"`, pathSchema+`"edits":{"type":"array","minItems":1,"maxItems":100,"items":%s}`,
			argument.Schema(`"old_string","new_string"`, editSchema)),
	}
}

func (b base) multiEdit(a multiArguments) (tools.Invocation, error) {
	edits, err := editArguments{Edits: append([]edit{}, a.Edits...)}.list()
	if err != nil {
		return nil, err
	}
	return b.edits(a.FilePath, edits)
}
