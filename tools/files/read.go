package files

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"

	"github.com/toold/toold/policy"
	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/tools"
)

// reader is the tool read_file.
type reader struct{ o Options }

type readArguments struct {
	FilePath      string          `json:"file_path" alias:"path" required:"true"`
	Offset        *int64          `json:"offset"`
	Limit         *int64          `json:"limit"`
	Numbered      bool            `json:"numbered"`
	Encoding      string          `json:"encoding" enum:"utf-8|base64"`
	Description   json.RawMessage `json:"description" ignored:"true"`
	Justification json.RawMessage `json:"justification" ignored:"true"`
}

func (r reader) Definition() tools.Definition {
	return tools.Definition{
		Name: "read_file",
		Description: fmt.Sprintf("Returns the content of a regular text file, byte for byte. At most %d bytes at once: "+
			"read longer files in parts with offset and limit.", r.o.MaxRead),
		Parameters: json.RawMessage(`{"type":"object","properties":{` +
			`"file_path":{"type":"string","description":"The file, relative to the workspace or absolute. A leading ~/ is the home directory."},` +
			`"offset":{"type":"integer","minimum":1,"description":"First line to return, counted from 1."},` +
			`"limit":{"type":"integer","minimum":1,"description":"Number of lines to return."},` +
			`"numbered":{"type":"boolean","description":"Put the line number and a tab before each line."},` +
			`"encoding":{"type":"string","enum":["utf-8","base64"],"description":"base64 returns any bytes, encoded."}},` +
			`"required":["file_path"],"additionalProperties":false}`),
	}
}

func (r reader) Build(args json.RawMessage) (tools.Invocation, error) {
	a, err := tools.Decode[readArguments](args)
	if err != nil {
		return nil, err
	}
	inv := read{o: r.o, offset: 1, limit: math.MaxInt64, numbered: a.Numbered, base64: a.Encoding == "base64"}
	if a.Offset != nil {
		inv.offset = *a.Offset
	}
	if a.Limit != nil {
		inv.limit = *a.Limit
	}
	switch {
	case inv.offset < 1:
		return nil, problem("offset", "%d is not a line: lines are counted from 1", inv.offset)
	case inv.limit < 1:
		return nil, problem("limit", "%d lines cannot be read; ask for 1 or more", inv.limit)
	case inv.numbered && inv.base64:
		return nil, problem("numbered", "lines cannot be numbered in base64; leave one of the two out")
	}
	inv.file, err = r.o.target(a.FilePath)
	return inv, err
}

// read is one call of read_file.
type read struct {
	o             Options
	file          target
	offset, limit int64 // in lines; offset from 1
	numbered      bool
	base64        bool
}

// OnlyReads says that reading changes nothing.
func (r read) OnlyReads() bool { return true }

func (r read) Effects() []policy.Effect { return []policy.Effect{r.file.effect(policy.Read)} }

func (r read) Preview() tools.Preview {
	text := "Read " + r.file.name()
	switch {
	case r.limit < math.MaxInt64:
		text += fmt.Sprintf(", %s from line %d on", plural(r.limit, "line"), r.offset)
	case r.offset > 1:
		text += fmt.Sprintf(", from line %d on", r.offset)
	}
	return tools.Preview{Text: tools.Visible(text)}
}

func (r read) Execute(ctx context.Context, _ tools.IO) tools.Result {
	data, held, err := r.content(ctx)
	var result tools.Result
	if err == nil {
		result.Text, err = r.text(data)
	}
	if err != nil {
		result = failed(ctx, err)
	}
	result.Sandbox = r.o.report(held)
	return result
}

// text is how content is told.
func (r read) text(data []byte) (string, error) {
	switch why := notText(data, false); {
	case r.base64:
		return base64.StdEncoding.EncodeToString(data), nil
	case why != "":
		return "", problem("encoding", "cannot read %s as text: %s", r.file.name(), why)
	case r.numbered:
		text := number(string(data), r.offset)
		if int64(len(text)) > r.o.MaxRead {
			return "", r.tooLarge("with numbers the lines have more")
		}
		return text, nil
	}
	return string(data), nil
}

func (r read) content(ctx context.Context) (data []byte, held sandbox.Report, err error) {
	if r.file.astray != nil {
		return nil, held, r.file.astray
	}
	f, held, err := r.o.Files.Open(ctx, r.o.Profile, r.file.canonical)
	if err != nil {
		return nil, held, err
	}
	defer f.Close()
	if r.offset == 1 && r.limit == math.MaxInt64 {
		data, err = r.whole(f)
	} else {
		data, err = r.part(ctx, &io.LimitedReader{R: f, N: mostScanned})
	}
	return data, held, err
}

// part reads the lines asked for.
func (r read) part(ctx context.Context, in *io.LimitedReader) ([]byte, error) {
	lines := lineReader{in: bufio.NewReaderSize(in, 32<<10)}
	err := lines.skip(ctx, r.offset-1)
	var data []byte
	if err == nil {
		data, err = lines.take(ctx, r.limit, r.o.MaxRead)
	}
	switch {
	case errors.Is(err, errTooLong):
		return nil, r.tooLarge("the lines asked for have more")
	case err != nil && !errors.Is(err, io.EOF):
		return nil, err
	case err != nil && in.N <= 0:
		return nil, problem("offset", "cannot read %s from line %d on: that is beyond the part of a file that is searched for lines; use bash", r.file.name(), r.offset)
	case len(data) == 0 && r.offset > 1:
		return nil, problem("offset", "cannot read %s from line %d on: it has %s", r.file.name(), r.offset, plural(lines.done, "line"))
	}
	return data, nil
}

// whole reads a file of no more than MaxRead bytes.
func (r read) whole(f *os.File) ([]byte, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() > r.o.MaxRead {
		return nil, r.tooLarge(fmt.Sprintf("it has %d bytes", info.Size()))
	}
	var data bytes.Buffer
	data.Grow(int(info.Size()) + bytes.MinRead)
	// It may grow while it is read, and the size of some files is not known.
	if _, err := data.ReadFrom(io.LimitReader(f, r.o.MaxRead+1)); err != nil {
		return nil, err
	}
	if int64(data.Len()) > r.o.MaxRead {
		return nil, r.tooLarge("it has more")
	}
	return data.Bytes(), nil
}

func (r read) tooLarge(why string) error {
	return problem("limit", "cannot read %s at once: %s, and a read returns at most %d bytes. Read it in parts: offset is the first line (from 1), limit the number of lines; "+
		"for parts of very long lines use bash with tail -c and head -c", r.file.name(), why, r.o.MaxRead)
}

// mostScanned bounds the time that finding a line can take: it costs nothing to
// make a file that has a hole of some terabytes.
const mostScanned = 8 << 30

var errTooLong = errors.New("too long")

// lineReader reads lines of any length in constant memory.
type lineReader struct {
	in   *bufio.Reader
	done int64 // lines behind; a last one without an end counts
	work int
}

// skip passes n lines; io.EOF when there are fewer. It counts in blocks, which is
// several times as fast as going from line to line.
func (l *lineReader) skip(ctx context.Context, n int64) error {
	within := false // a line
	for n > 0 {
		if err := l.stopped(ctx); err != nil {
			return err
		}
		if _, err := l.in.Peek(1); err != nil {
			if within {
				l.done++
			}
			return err
		}
		block, _ := l.in.Peek(l.in.Buffered()) // cannot fail: it is there
		lines := int64(bytes.Count(block, []byte("\n")))
		if lines >= n {
			block, lines = firstLines(block, n), n
		}
		within = block[len(block)-1] != '\n'
		n -= lines
		l.done += lines
		_, _ = l.in.Discard(len(block)) // nor can this
	}
	return nil
}

// firstLines is the beginning of block, which has n lines at least.
func firstLines(block []byte, n int64) []byte {
	end := 0
	for range n {
		end += bytes.IndexByte(block[end:], '\n') + 1
	}
	return block[:end]
}

// take returns up to n lines; errTooLong when they have more than most bytes, and
// what there is with io.EOF when there are fewer.
func (l *lineReader) take(ctx context.Context, n, most int64) (data []byte, err error) {
	for n > 0 {
		if err := l.stopped(ctx); err != nil {
			return nil, err
		}
		piece, err := l.in.ReadSlice('\n')
		if int64(len(data)+len(piece)) > most {
			return nil, errTooLong
		}
		data = append(data, piece...)
		switch {
		case err == nil:
			n--
		case !errors.Is(err, bufio.ErrBufferFull): // a line longer than the buffer
			return data, err
		}
	}
	return data, nil
}

// stopped looks at ctx from time to time.
func (l *lineReader) stopped(ctx context.Context) error {
	if l.work++; l.work%1024 == 0 {
		return ctx.Err()
	}
	return nil
}

// number puts line numbers before lines.
func number(text string, first int64) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		fmt.Fprintf(&b, "%6d\t%s", first, line)
		first++
	}
	return b.String()
}
