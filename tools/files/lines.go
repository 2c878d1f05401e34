package files

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
)

const (
	// mostScanned limits the time to find a line, in bytes: a sparse file of terabytes costs an attacker nothing.
	mostScanned = 8 << 30

	// mostCounted limits how many bytes are read after the first returned line to count the lines.
	mostCounted = 256 << 20

	shownOfLine = 2000 // bytes shown of a line that is too long
)

type bounds struct {
	lines int64
	bytes int64 // including line numbers and marks
	line  int64 // longest line; others are cut
	whole int64 // longest line that can be returned alone
}

type excerpt struct {
	text  []byte // including line numbers and marks
	first int64
	lines int64
	bytes int64 // of the file in text
	total int64 // of the file; negative = unknown
	cut   bool
	full  bool // bounds.bytes was reached
	open  bool // the last line was not read to its end
}

func (e excerpt) more() bool { return e.total < 0 || e.first+e.lines <= e.total }

func (e excerpt) notice() string {
	next := e.first + e.lines
	switch {
	case !e.more():
		return ""
	case e.total < 0:
		return fmt.Sprintf("[lines %d-%d of many more; continue with offset %d]\n", e.first, next-1, next)
	default:
		return fmt.Sprintf("[lines %d-%d of %d; continue with offset %d]\n", e.first, next-1, e.total, next)
	}
}

// lineReader reads lines of any length in constant memory.
type lineReader struct {
	src  *io.LimitedReader
	in   *bufio.Reader
	kept []byte // of the last line
	done int64  // lines read; an unterminated last line counts
	work int    // steps, to look at the context now and then
}

func newLineReader(in io.Reader) *lineReader {
	src := &io.LimitedReader{R: in, N: mostScanned}
	return &lineReader{src: src, in: bufio.NewReaderSize(src, 32<<10)}
}

func (l *lineReader) exhausted() bool { return l.src.N <= 0 }

// excerpt returns the following lines within b.
func (l *lineReader) excerpt(ctx context.Context, b bounds, numbered bool) (excerpt, error) {
	e := excerpt{first: l.done + 1, total: -1}
	l.src.N = min(l.src.N, mostCounted)
	for e.lines < b.lines {
		line, n, err := l.line(ctx, b.line)
		e.open = l.exhausted() && errors.Is(err, io.EOF)
		if n > 0 && !e.add(line, n, b, numbered) {
			e.full = true
			break
		}
		if errors.Is(err, io.EOF) {
			if !l.exhausted() {
				e.total = l.done
			}
			return e, nil
		}
		if err != nil {
			return e, err
		}
	}
	switch err := l.skip(ctx, math.MaxInt64); {
	case !errors.Is(err, io.EOF):
		return e, err
	case !l.exhausted():
		e.total = l.done
	}
	return e, nil
}

// add appends a line of n bytes, of which line has the first ones. It returns false if it does not fit.
func (e *excerpt) add(line []byte, n int64, b bounds, numbered bool) bool {
	number, shown, mark := e.first+e.lines, line, ""
	if n > int64(len(line)) || e.open {
		shown = beginning(line, shownOfLine)
		least, whole := "", n
		if e.open {
			least, whole = "at least ", math.MaxInt64
		}
		mark = fmt.Sprintf(" [… %s%d more bytes of line %d; %s …]\n", least, n-int64(len(shown)), number, b.rest(number, whole))
	}
	prefix := ""
	if numbered {
		prefix = fmt.Sprintf("%6d\t", number)
	}
	if size := int64(len(e.text) + len(prefix) + len(shown) + len(mark)); size > b.bytes && e.lines > 0 {
		return false
	}
	e.text = append(append(append(e.text, prefix...), shown...), mark...)
	e.lines++
	e.bytes += int64(len(shown))
	e.cut = e.cut || mark != ""
	return true
}

// rest tells the model how to read the whole line.
func (b bounds) rest(number, n int64) string {
	if n <= b.whole {
		return fmt.Sprintf("offset %d and limit 1 return all of it", number)
	}
	return fmt.Sprintf("for the rest use bash: sed -n %dp FILE | tail -c +%d | head -c 20000", number, shownOfLine+1)
}

// line returns at most most bytes of the next line, and its length. The bytes are valid until the next call. io.EOF
// comes with the last line.
func (l *lineReader) line(ctx context.Context, most int64) (kept []byte, n int64, err error) {
	l.kept = l.kept[:0]
	for {
		if err := l.stopped(ctx); err != nil {
			return nil, 0, err
		}
		piece, err := l.in.ReadSlice('\n')
		n += int64(len(piece))
		l.kept = append(l.kept, piece[:min(int64(len(piece)), most-int64(len(l.kept)))]...)
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if n > 0 {
			l.done++
		}
		return l.kept, n, err
	}
}

// skip skips n lines, or returns io.EOF if there are fewer. Counting in blocks is several times faster than reading
// lines.
func (l *lineReader) skip(ctx context.Context, n int64) error {
	within := false // the last block ended inside a line
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
		block, _ := l.in.Peek(l.in.Buffered())
		lines := int64(bytes.Count(block, []byte("\n")))
		if lines >= n {
			block, lines = firstLines(block, n), n
		}
		within = block[len(block)-1] != '\n'
		n -= lines
		l.done += lines
		_, _ = l.in.Discard(len(block))
	}
	return nil
}

func firstLines(block []byte, n int64) []byte {
	end := 0
	for range n {
		end += bytes.IndexByte(block[end:], '\n') + 1
	}
	return block[:end]
}

func (l *lineReader) stopped(ctx context.Context) error {
	if l.work++; l.work%1024 == 0 {
		return ctx.Err()
	}
	return nil
}
