package files

import (
	"fmt"
	"regexp"
	"strings"
)

// The markers of the V4A patch format.
const (
	beginPatch = "*** Begin Patch"
	endPatch   = "*** End Patch"
	addFile    = "*** Add File: "
	updateFile = "*** Update File: "
	deleteFile = "*** Delete File: "
	moveTo     = "*** Move to: "
	endOfFile  = "*** End of File"
)

type section struct {
	header string
	path   string
	to     string   // new path; "": the file is not moved
	text   []string // lines of a new file
	hunks  []hunk
}

type hunk struct {
	line    int      // in the patch, from 1
	anchors []string // preceding lines of the file
	lines   []string // each prefixed by "+", "-" or a space
	eof     bool     // at the end of the file
}

func (h hunk) without(mark byte) []string {
	var list []string
	for _, line := range h.lines {
		if line[0] != mark {
			list = append(list, line[1:])
		}
	}
	return list
}

type patchParser struct {
	field string // for errors
	lines []string
	at    int
}

func newPatchParser(field, text string) *patchParser {
	lines := strings.Split(text, "\n")
	if strings.HasSuffix(lines[0], "\r") { // so does the whole patch
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
	for !p.ended() {
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

// take consumes the next line if it has a prefix, and returns the rest.
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

// begins reports whether the next line starts another section.
func (p *patchParser) begins() bool {
	return p.ended() || strings.HasPrefix(p.lines[p.at], "*** ") && p.lines[p.at] != endOfFile
}

func (p *patchParser) added() (text []string, err error) {
	for !p.begins() {
		line, ok := strings.CutPrefix(p.lines[p.at], "+")
		if !ok {
			return nil, p.fail("%s has no \"+\" before it; every line of a new file needs one", quote(p.lines[p.at:p.at+1]))
		}
		text = append(text, line)
		p.at++
	}
	return text, nil
}

// hunks parses the changes of one file; none allows zero.
func (p *patchParser) hunks(none bool) (list []hunk, err error) {
	for !p.begins() {
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

var unifiedNumbers = regexp.MustCompile(`^-\d+(,\d+)? \+\d+(,\d+)? @@`)

func (p *patchParser) hunk(first bool) (h hunk, err error) {
	h.line = p.at + 1
	for !p.ended() && (p.lines[p.at] == "@@" || strings.HasPrefix(p.lines[p.at], "@@ ")) {
		anchor := strings.TrimSpace(p.lines[p.at][2:])
		if unifiedNumbers.MatchString(anchor) {
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
		case strings.ContainsRune("+- ", rune(line[0])):
			h.lines = append(h.lines, line)
		default:
			return h, p.fail("%s has neither \"+\", \"-\" nor a space before it", quote(p.lines[p.at:p.at+1]))
		}
		p.at++
	}
	if len(h.without(' ')) == 0 {
		return h, p.fail("the preceding change only repeats lines of the file; prefix removed lines with \"-\" and added lines with \"+\"")
	}
	return h, nil
}
