package files

import (
	"context"
	"fmt"
	"strings"

	"github.com/toold/toold/internal/lazyregexp"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/argument"
)

// The headers of the V4A patch format.
const (
	beginPatch = "*** Begin Patch"
	endPatch   = "*** End Patch"
	addFile    = "*** Add File: "
	updateFile = "*** Update File: "
	deleteFile = "*** Delete File: "
	moveTo     = "*** Move to: "
	endOfFile  = "*** End of File"
)

// MovePatch returns a patch with the paths in its headers replaced. move gets them without surrounding spaces.
func MovePatch(patch string, move func(path string) string) string {
	lines := strings.SplitAfter(patch, "\n")
	for i, line := range lines {
		for _, header := range []string{addFile, updateFile, deleteFile, moveTo} {
			rest, ok := strings.CutPrefix(line, header)
			if path := strings.TrimSpace(rest); ok && path != "" {
				_, end, _ := strings.Cut(rest, path)
				lines[i] = header + move(path) + end
			}
		}
	}
	return strings.Join(lines, "")
}

type section struct {
	header string // addFile, updateFile or deleteFile
	path   string
	to     string   // new path; "" = the file is not moved
	text   []string // lines of a new file
	hunks  []hunk
}

type patchParser struct {
	field string // the argument, for errors
	lines []string
	at    int
}

func newPatchParser(field, text string) *patchParser {
	lines := strings.Split(text, "\n")
	if strings.HasSuffix(lines[0], "\r") { // so has the whole patch
		for i := range lines {
			lines[i] = strings.TrimSuffix(lines[i], "\r")
		}
	}
	return &patchParser{field: field, lines: lines}
}

func parsePatch(field, text string) ([]section, error) {
	p := newPatchParser(field, strings.Trim(text, "\r\n\t "))
	last := len(p.lines) - 1
	switch {
	case p.lines[0] != beginPatch:
		return nil, p.fail("the patch begins with %s and not with %q; unified diffs are not supported", quote(p.lines[:1]), beginPatch)
	case p.lines[last] != endPatch:
		p.at = last
		return nil, p.fail("the patch ends with %s and not with %q", quote(p.lines[last:]), endPatch)
	}
	p.at, p.lines = 1, p.lines[:last]
	var list []section
	for p.skipEmpty(p.begins); !p.ended(); p.skipEmpty(p.begins) {
		s, err := p.section()
		if err != nil {
			return nil, err
		}
		list = append(list, s)
	}
	if len(list) == 0 {
		return nil, p.fail("the patch changes no file; add %q, %q or %q and a path", addFile, updateFile, deleteFile)
	}
	return list, nil
}

func (p *patchParser) ended() bool { return p.at >= len(p.lines) }

func (p *patchParser) fail(format string, args ...any) error {
	return problem(p.field, "line %d of the patch: %s", min(p.at, len(p.lines))+1, fmt.Sprintf(format, args...))
}

func (p *patchParser) take(prefix string) (rest string, ok bool) {
	if p.ended() {
		return "", false
	}
	if rest, ok = strings.CutPrefix(p.lines[p.at], prefix); !ok {
		return "", false
	}
	p.at++
	return strings.TrimSpace(rest), true
}

// skipEmpty skips the empty lines that many models write between sections, unless something other than those ends
// follows.
func (p *patchParser) skipEmpty(ends func() bool) bool {
	at := p.at
	for !p.ended() && p.lines[p.at] == "" {
		p.at++
	}
	if p.at > at && !ends() {
		p.at = at
	}
	return p.at > at
}

func (p *patchParser) section() (s section, err error) {
	for _, header := range []string{addFile, updateFile, deleteFile} {
		path, ok := p.take(header)
		if !ok {
			continue
		}
		if s.header, s.path = header, path; path == "" {
			p.at--
			return s, p.fail("%q names no file", strings.TrimSpace(header))
		}
		switch header {
		case addFile:
			s.text, err = p.added()
		case updateFile:
			s.to, _ = p.take(moveTo)
			s.hunks, err = p.hunks(s.to != "")
		}
		return s, err
	}
	return s, p.fail("%s begins no file; one begins with %q, %q or %q", quote(p.lines[p.at:p.at+1]), addFile, updateFile, deleteFile)
}

func (p *patchParser) begins() bool {
	return p.ended() || strings.HasPrefix(p.lines[p.at], "*** ") && p.lines[p.at] != endOfFile
}

func (p *patchParser) added() (text []string, err error) {
	for !p.begins() {
		line, ok := strings.CutPrefix(p.lines[p.at], "+")
		if !ok && p.skipEmpty(p.begins) {
			break
		}
		if !ok {
			return nil, p.fail("%s has no \"+\" before it; every line of a new file needs one", quote(p.lines[p.at:p.at+1]))
		}
		text = append(text, line)
		p.at++
	}
	return text, nil
}

// hunks parses the changes of one file. none allows zero hunks.
func (p *patchParser) hunks(none bool) (list []hunk, err error) {
	next := func() bool { return p.begins() || strings.HasPrefix(p.lines[p.at], "@@") }
	for p.skipEmpty(next); !p.begins(); p.skipEmpty(next) {
		h, err := p.hunk(len(list) == 0)
		if err != nil {
			return nil, err
		}
		list = append(list, h)
	}
	if len(list) == 0 && !none {
		return nil, p.fail("the preceding file has no changes; a change is lines prefixed by \"+\", \"-\" or a space")
	}
	return list, nil
}

// unifiedNumbers matches what follows "@@ " in a unified diff.
var unifiedNumbers = lazyregexp.New(`^-\d+(,\d+)? \+\d+(,\d+)? @@`)

func (p *patchParser) hunk(first bool) (h hunk, err error) {
	h.line = p.at + 1
	for !p.ended() && (p.lines[p.at] == "@@" || strings.HasPrefix(p.lines[p.at], "@@ ")) {
		anchor := strings.TrimSpace(p.lines[p.at][2:])
		if unifiedNumbers().MatchString(anchor) {
			return h, p.fail("line numbers are not supported; write \"@@\" alone, or \"@@ \" and a line of the file above the change")
		}
		if anchor != "" {
			h.anchors = append(h.anchors, anchor)
		}
		first = true
		p.at++
	}
	if !first {
		return h, p.fail("%s begins no change; one begins with \"@@\"", quote(p.lines[p.at:p.at+1]))
	}
	for !p.begins() && !h.eof && !strings.HasPrefix(p.lines[p.at], "@@") {
		switch line := p.lines[p.at]; {
		case line == endOfFile:
			h.eof = true
		case line == "":
			h.lines = append(h.lines, " ")
			h.spare++
			p.at++
			continue
		case strings.ContainsRune("+- ", rune(line[0])):
			h.lines = append(h.lines, line)
		default:
			return h, p.fail("%s has neither \"+\", \"-\" nor a space before it", quote(p.lines[p.at:p.at+1]))
		}
		if p.at++; !h.eof {
			h.spare = 0
		}
	}
	if len(h.without(' ')) == 0 {
		return h, p.fail("the preceding change only repeats lines of the file; prefix removed lines with \"-\" and added lines with \"+\"")
	}
	return h, nil
}

type patchArguments struct {
	Input     *string    `json:"input" alias:"patch,patchText"`
	Operation *operation `json:"operation"`
	argument.Ignored
}

// operation is the patch of one file without its header line.
type operation struct {
	Type string  `json:"type" enum:"create_file|update_file|delete_file" required:"true"`
	Path string  `json:"path" required:"true"`
	Diff *string `json:"diff"`
}

// Limits of the time for one patch.
const (
	mostFiles = 100
	mostHunks = 1000 // each searches the rest of its file
)

func patchDefinition() tools.Definition {
	return tools.Definition{
		Name: "apply_patch",
		Description: "Changes several text files atomically. A patch begins with \"*** Begin Patch\" and ends with \"*** End Patch\"; " +
			"between them come \"*** Add File: PATH\" and its lines prefixed by +, \"*** Delete File: PATH\", or \"*** Update File: PATH\", optionally \"*** Move to: PATH\", and hunks. " +
			"A hunk begins with @@, or with @@ and a line of the file above the change, and contains unchanged lines prefixed by a space, removed ones by -, added ones by +. " +
			"The lines of a hunk must occur once; \"*** End of File\" after a hunk says that it is at the end.",
		Parameters: argument.Schema(`"input"`, `"input":{"type":"string","description":"The whole patch. Paths are relative to the workspace or absolute."}`),
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

func (b base) patch(a patchArguments) (tools.Invocation, error) {
	sections, err := a.sections()
	if err != nil {
		return nil, err
	}
	if len(sections) > mostFiles {
		return nil, problem("input", "it changes %d files; at most %d can be changed in one call", len(sections), mostFiles)
	}
	c := &change{o: b.o, busy: b.busy, verb: "Patch", done: patchedFiles}
	hunks := 0
	for _, s := range sections {
		if hunks += len(s.hunks); hunks > mostHunks {
			return nil, problem("input", "it has more than %d hunks, and one call can make no more; send the rest in other calls, or change the files with bash (sed)", mostHunks)
		}
		one, err := b.step(s)
		if err != nil {
			return nil, err
		}
		c.steps = append(c.steps, one)
		c.effects = append(c.effects, one.effects()...)
	}
	return c, c.distinct()
}

func (b base) step(s section) (one step, err error) {
	if one.file, err = b.o.target(s.path); err != nil {
		return one, inPatch(s.path, err)
	}
	if s.to != "" {
		if one.to, err = b.o.target(s.to); err != nil {
			return one, inPatch(s.to, err)
		}
	}
	switch s.header {
	case addFile:
		one.fresh, one.absent = true, true
		text := strings.Join(append(s.text, ""), "\n")
		one.compute = func(context.Context, target, []byte) (made, error) { return made{after: []byte(text)}, nil }
	case deleteFile:
		one.remove = true
	default:
		one.compute = func(ctx context.Context, file target, before []byte) (made, error) {
			if len(s.hunks) == 0 { // only moved
				return made{after: before}, nil
			}
			return applyHunks(ctx, s.hunks, file, before)
		}
	}
	return one, nil
}

func inPatch(path string, err error) error {
	return problem("input", "the path %q of the patch: %v", path, err)
}

// effects returns the effects on one file. A new file is not read.
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

// distinct returns an error if two steps write the same file.
func (c *change) distinct() error {
	seen := map[string]bool{}
	for _, file := range c.paths() {
		if seen[file.canonical] {
			return problem("input", "the patch names %s twice; put all changes of a file into one section", file.name())
		}
		seen[file.canonical] = true
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
