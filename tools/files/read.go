package files

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/toold/toold/internal/display"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/argument"
)

type readArguments struct {
	FilePath string `json:"file_path" alias:"path" required:"true"`
	Offset   *int64 `json:"offset"`
	Limit    *int64 `json:"limit"`
	Numbered bool   `json:"numbered"`
	Encoding string `json:"encoding" enum:"utf-8|base64"`
	argument.Ignored
}

func (b base) readDefinition() tools.Definition {
	return tools.Definition{
		Name: "read_file",
		Description: fmt.Sprintf("Returns the content of a regular text file, byte for byte. At most %d lines and %d KiB, or with limit that many lines and at most %d KiB; "+
			"if more follows, the last line says how many lines there are and at which offset to continue.", usualLines, usualBytes>>10, b.o.MaxRead>>10),
		Parameters: argument.Schema(`"file_path"`, pathSchema+
			`"offset":{"type":"integer","minimum":1,"description":"First line to return, counted from 1."},`+
			`"limit":{"type":"integer","minimum":1,"description":"Number of lines to return. Lines are not cut then."},`+
			`"numbered":{"type":"boolean","description":"Put the line number and a tab before each line."},`+
			`"encoding":{"type":"string","enum":["utf-8","base64"],"description":"base64 returns any bytes, encoded."}`),
	}
}

func (b base) read(a readArguments) (tools.Invocation, error) {
	first, usual := int64(1), int64(0)
	inv := read{o: b.o, offset: *cmp.Or(a.Offset, &first), limit: *cmp.Or(a.Limit, &usual), numbered: a.Numbered, base64: a.Encoding == "base64"}
	switch {
	case inv.offset < 1:
		return nil, problem("offset", "%d is not a line: lines are counted from 1", inv.offset)
	case a.Limit != nil && inv.limit < 1:
		return nil, problem("limit", "%d lines cannot be read; ask for 1 or more", inv.limit)
	case inv.numbered && inv.base64:
		return nil, problem("numbered", "lines cannot be numbered in base64; leave one of the two out")
	}
	var err error
	inv.file, err = b.o.resolve(a.FilePath)
	return inv, err
}

type read struct {
	o             Options
	file          target
	offset, limit int64 // in lines; offset from 1, limit 0 = default
	numbered      bool
	base64        bool
}

func (r read) Traits() tools.Traits { return tools.Traits{ReadOnly: true} }

func (r read) Effects() []policy.Effect { return []policy.Effect{r.file.effect(policy.Read)} }

func (r read) Text() string {
	text := "Read " + r.file.name()
	switch {
	case r.limit > 0:
		text += fmt.Sprintf(", %s from line %d on", plural(r.limit, "line"), r.offset)
	case r.offset > 1:
		text += fmt.Sprintf(", from line %d on", r.offset)
	}
	return display.Visible(text)
}

func (r read) Execute(ctx context.Context, io tools.IO) tools.Result {
	var result tools.Result
	var e excerpt
	var held sandbox.Report
	var err error
	if r.o, err = r.o.masked(ctx, io); err == nil {
		e, held, err = r.content(ctx, io)
	}
	if err == nil {
		result, err = r.result(e)
	}
	if err != nil {
		result = failed(ctx, err)
	}
	result.Sandbox = r.o.report(held)
	return result
}

func (r read) result(e excerpt) (tools.Result, error) {
	f := &tools.File{Path: r.file.canonical, Operation: "read", Bytes: e.bytes, Lines: e.lines}
	if e.total >= 0 {
		f.TotalLines = &e.total
	}
	if e.more() {
		f.NextOffset = e.first + e.lines
	}
	result := tools.Result{File: f}
	switch why := notText(e.text, false); {
	case r.base64:
		result.Text = base64.StdEncoding.EncodeToString(e.text)
	case e.total == 0:
		result.Text = "The file exists and is empty."
	case why != "":
		return result, problem("encoding", "cannot read %s as text: %s", r.file.name(), why)
	default:
		result.Text = string(e.text) + e.notice()
	}
	return result, nil
}

func (r read) content(ctx context.Context, calls tools.IO) (e excerpt, held sandbox.Report, err error) {
	if r.file.astray != nil {
		return e, held, r.file.astray
	}
	if err := r.o.limited(r.file.canonical, false); err != nil {
		return e, held, err
	}
	if endsInDirectory(r.file.asked) {
		return e, held, r.o.instead(ctx, calls, r.file, fmt.Errorf("cannot read %s: it is a directory, not a regular file", r.file.asked))
	}
	f, held, err := r.o.Files.Open(ctx, r.o.Profile, r.file.canonical)
	if err != nil {
		return e, held, r.o.instead(ctx, calls, r.file, err)
	}
	defer f.Close()
	e, err = r.excerpt(ctx, newLineReader(f))
	return e, held, err
}

func (r read) excerpt(ctx context.Context, lines *lineReader) (e excerpt, err error) {
	err = lines.skip(ctx, r.offset-1)
	if err == nil {
		e, err = lines.excerpt(ctx, r.bounds(), r.numbered)
	}
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		return e, err
	case e.lines == 0 && lines.exhausted():
		return e, problem("offset", "cannot read %s from line %d on: that is beyond the part of a file that this tool reads; use bash", r.file.name(), r.offset)
	case r.base64 && (e.cut || e.full):
		return e, problem("limit", "cannot read %s at once: the lines asked for have more than %d bytes. Read it in parts: offset is the first line (from 1), limit the number of lines; "+
			"for parts of very long lines use bash with tail -c and head -c", r.file.name(), r.o.MaxRead)
	case e.lines == 0 && r.offset > 1:
		return e, problem("offset", "cannot read %s from line %d on: it has %s", r.file.name(), r.offset, plural(lines.done, "line"))
	}
	return e, nil
}

// Defaults if no limit is given.
const (
	usualLines = 2000
	usualBytes = 64 << 10
	usualLine  = 8 << 10
)

func (r read) bounds() bounds {
	most := r.o.MaxRead
	if r.limit > 0 || r.base64 {
		lines := r.limit
		if lines == 0 {
			lines = math.MaxInt64
		}
		return bounds{lines: lines, bytes: most, line: most, whole: most}
	}
	return bounds{lines: usualLines, bytes: min(usualBytes, most), line: min(usualLine, most), whole: most}
}
