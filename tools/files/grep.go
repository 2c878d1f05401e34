package files

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"regexp"
	"regexp/syntax"
	"strings"
	"syscall"

	"github.com/toold/toold/internal/display"
	"github.com/toold/toold/internal/lazyregexp"
	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/argument"
)

const (
	mostAround   = 50       // lines of context
	shownOfHit   = 500      // bytes of a matching line
	sniffed      = 8 << 10  // leading bytes in which a NUL marks a binary file
	longestGrep  = 1000     // bytes of a pattern
	longestPiece = 64 << 10 // bytes matched between checks of the time
	mostStates   = 5000     // states of a matcher; each costs a few ns per byte
)

type grepArguments struct {
	Pattern    string          `json:"pattern" required:"true"`
	Path       string          `json:"path" alias:"dir_path,directory"`
	Glob       string          `json:"glob" alias:"include"`
	Mode       string          `json:"mode" alias:"output_mode" enum:"content|files|count|files_with_matches"`
	IgnoreCase bool            `json:"ignore_case" alias:"-i"`
	Before     *int64          `json:"before" alias:"-B"`
	After      *int64          `json:"after" alias:"-A"`
	Context    *int64          `json:"context" alias:"-C"`
	Limit      *int64          `json:"limit" alias:"head_limit,max_results"`
	Numbers    json.RawMessage `json:"-n" ignored:"true"`
	argument.Ignored
}

func grepDefinition() tools.Definition {
	return tools.Definition{
		Name: "grep",
		Description: "Searches files for lines that match a regular expression (RE2), and returns them as path:line:text, sorted by path. " +
			"Leaves out .git, node_modules, binary files and what the policy does not let you read, and says so; follows no links.",
		Parameters: argument.Schema(`"pattern"`, `"pattern":{"type":"string","minLength":1,"description":"The regular expression, matched within each line."},`+
			`"path":{"type":"string","description":"The file or directory to search, relative to the workspace or absolute. Default: the workspace."},`+
			`"glob":{"type":"string","description":"Search only files whose path matches: *.go, src/**/*.{ts,tsx}."},`+
			`"mode":{"type":"string","enum":["content","files","count"],"description":"content: the lines (default). files: the paths of files with a match. count: matching lines of each file."},`+
			`"ignore_case":{"type":"boolean"},`+
			`"before":{"type":"integer","minimum":0,"maximum":%[1]d,"description":"Lines to show before each match."},`+
			`"after":{"type":"integer","minimum":0,"maximum":%[1]d,"description":"Lines to show after each match."},`+
			`"context":{"type":"integer","minimum":0,"maximum":%[1]d,"description":"Lines to show before and after."},`+
			`"limit":{"type":"integer","minimum":1,"maximum":%[2]d,"description":"Number of matches, or paths, to return. Default: %[3]d."}`, mostAround, mostFound, usualFound),
	}
}

func (b base) grep(a grepArguments) (_ tools.Invocation, err error) {
	h := hunt{mode: a.Mode, some: a.Glob != "", cr: carriageReturn().MatchString(a.Pattern)}
	if h.match, err = compileSearch(a.Pattern, a.IgnoreCase); err != nil {
		return nil, err
	}
	for _, n := range []struct {
		field string
		value *int64
		lines []*int
	}{
		{"context", a.Context, []*int{&h.before, &h.after}},
		{"before", a.Before, []*int{&h.before}},
		{"after", a.After, []*int{&h.after}},
	} {
		if n.value == nil {
			continue
		}
		if *n.value < 0 || *n.value > mostAround {
			return nil, problem(n.field, "%d lines; expected 0 to %d", *n.value, mostAround)
		}
		for _, to := range n.lines {
			*to = int(*n.value)
		}
	}
	if a.Glob == "" {
		a.Glob = "**"
	}
	h.search = search{o: b.o, text: fmt.Sprintf("Search for %s in ", a.Pattern)}
	if err := h.prepare(a.Path, a.Limit); err != nil {
		return nil, err
	}
	if h.names, err = newPathPattern("glob", a.Glob, h.root.path, true); err != nil {
		return nil, err
	}
	s := h.search
	s.none, s.find = "No line matches.", h.files
	if lineEnd().MatchString(a.Pattern) {
		s.none = "No line matches. Each line is matched alone, without its end: a line end in the pattern matches nothing."
	}
	return s, nil
}

// Escapes and classes that match at the end of a line.
var (
	carriageReturn = lazyregexp.New(`\r|(?:\A|[^\\])(?:\\\\)*\\(?:r|x0[dD])`)
	lineEnd        = lazyregexp.New(`\n|(?:\A|[^\\])(?:\\\\)*\\(?:n|x0[aA])`)
)

func compileSearch(text string, ignoreCase bool) (*regexp.Regexp, error) {
	switch {
	case text == "":
		return nil, problem("pattern", "empty; expected a regular expression")
	case len(text) > longestGrep:
		return nil, problem("pattern", "it has %d bytes; at most %d are allowed", len(text), longestGrep)
	}
	if ignoreCase {
		text = "(?i)" + text
	}
	tree, err := syntax.Parse(text, syntax.Perl)
	if err == nil && states(tree) > mostStates {
		return nil, problem("pattern", "its repetitions take too long to match: expanded it has more than %d parts; use smaller numbers in braces, or * and +", mostStates)
	}
	var match *regexp.Regexp
	if err == nil {
		match, err = regexp.Compile(text)
	}
	if err != nil {
		return nil, problem("pattern", "%v; patterns are RE2: no look-around and no back references, and special characters need a backslash", err)
	}
	return match, nil
}

// states estimates the number of states of a matcher: x{2,9} counts as nine times x. Parse limits the nesting and the
// product of nested repetitions.
func states(re *syntax.Regexp) int {
	n := 1
	if re.Op == syntax.OpLiteral {
		n = len(re.Rune)
	}
	for _, sub := range re.Sub {
		n += states(sub)
	}
	if re.Op == syntax.OpRepeat {
		n *= max(1, re.Min, re.Max)
	}
	return n
}

type hunt struct {
	search
	match         *regexp.Regexp
	some          bool // a glob was given
	cr            bool // the pattern contains a carriage return; other patterns do not see one at the end of a line
	mode          string
	before, after int
}

func (h hunt) files(ctx context.Context, w *walk, found *findings) error {
	w.visit = func(ctx context.Context, path string, e fs.DirEntry) error {
		if e.IsDir() {
			return nil
		}
		err := h.file(ctx, w, path, found)
		if err != nil && !errors.Is(err, errEnough) && ctx.Err() == nil {
			w.fault(err)
			return nil
		}
		return err
	}
	err := w.run(ctx)
	none := w.opened == 0 && len(w.omitted) == 0 && w.stopped == ""
	if err == nil && h.some && none {
		found.none = "No line matches: no file was searched, since glob fits none."
	}
	if err == nil || ctx.Err() != nil || w.entries > 0 {
		return err
	}
	// The root may be a file, which was judged with the call.
	once := h.file(ctx, w, "", found)
	switch {
	case once == nil, errors.Is(once, errEnough):
		return nil
	case errors.Is(err, syscall.ENOTDIR):
		return once
	}
	return err
}

// file searches one file. "" stands for the root.
func (h hunt) file(ctx context.Context, w *walk, path string, found *findings) error {
	f, err := w.open(ctx, path)
	if err != nil {
		return err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, mostFile+1))
	if err != nil {
		return err
	}
	w.read += int64(len(data))
	switch {
	case w.read > mostRead:
		return w.stop(fmt.Sprintf("after %d MiB", mostRead>>20))
	case bytes.IndexByte(data[:min(len(data), sniffed)], 0) >= 0:
		w.omitted[unsuited("binary")]++
		return nil
	case len(data) > mostFile:
		w.omitted[unsuited(fmt.Sprintf("larger than %d MiB; use bash", mostFile>>20))]++
		return nil
	}
	return h.text(ctx, w, h.shown(path), data, found)
}

func (h hunt) text(ctx context.Context, w *walk, name string, data []byte, found *findings) error {
	e := excerpts{hunt: h, name: name, found: found}
	count, number, unseen := 0, 0, 0
	for line := range bytes.Lines(data) {
		// A malicious pattern takes about a second for this many bytes.
		if unseen += len(line); unseen >= longestPiece {
			if err := w.inTime(ctx); err != nil {
				return err
			}
			unseen = 0
		}
		if number++; number == 1 {
			line = bytes.TrimPrefix(line, []byte(bom))
		}
		hit, err := h.matches(ctx, w, line)
		if err != nil {
			return err
		}
		if hit {
			count++
		}
		switch {
		case h.mode == "count":
		case hit && strings.HasPrefix(h.mode, "files"):
			return found.add(name)
		case !strings.HasPrefix(h.mode, "files"):
			if err := e.line(number, line, hit); err != nil {
				return err
			}
		}
	}
	if count > 0 && h.mode == "count" {
		return found.add(fmt.Sprintf("%s:%d", name, count))
	}
	return e.flush()
}

// matches reports whether a line matches. In a long line, it checks the time.
func (h hunt) matches(ctx context.Context, w *walk, line []byte) (bool, error) {
	if line = bytes.TrimSuffix(line, []byte("\n")); !h.cr {
		line = bytes.TrimRight(line, "\r")
	}
	if len(line) <= longestPiece {
		return h.match.Match(line), nil
	}
	if prefix, _ := h.match.LiteralPrefix(); !bytes.Contains(line, []byte(prefix)) { // MatchReader is slow
		return false, nil
	}
	t := &timed{Reader: bytes.NewReader(line), check: func() error { return w.inTime(ctx) }}
	hit := h.match.MatchReader(t)
	return hit && t.err == nil, t.err
}

// timed is a reader that ends when check fails.
type timed struct {
	*bytes.Reader
	check func() error
	runes int
	err   error
}

func (t *timed) ReadRune() (rune, int, error) {
	if t.runes++; t.runes%longestPiece == 0 {
		t.err = cmp.Or(t.err, t.check())
	}
	if t.err != nil {
		return 0, 0, t.err
	}
	return t.Reader.ReadRune()
}

type excerpts struct {
	hunt
	name  string
	found *findings
	prior []string // context before the next match
	block []string // a match and its context
	left  int      // context lines still to print
	shown bool
	gap   bool // lines were omitted since
}

func (e *excerpts) line(number int, line []byte, hit bool) error {
	switch {
	case hit:
		if err := e.flush(); err != nil {
			return err
		}
		if e.shown && e.gap && e.before+e.after > 0 {
			e.block = append(e.block, "--")
		}
		e.block = append(append(e.block, e.prior...), e.format(':', number, line))
		e.prior, e.left, e.shown, e.gap = nil, e.after, true, false
	case e.left > 0:
		e.left--
		e.block = append(e.block, e.format('-', number, line))
	case e.before == 0:
		e.gap = true
	default:
		if len(e.prior) == e.before {
			e.prior, e.gap = e.prior[1:], true
		}
		e.prior = append(e.prior, e.format('-', number, line))
	}
	return nil
}

func (e *excerpts) flush() error {
	if len(e.block) == 0 {
		return nil
	}
	block := strings.Join(e.block, "\n")
	e.block = nil
	return e.found.add(block)
}

func (e *excerpts) format(mark byte, number int, line []byte) string {
	return fmt.Sprintf("%s%c%d%c%s", e.name, mark, number, mark, shownLine(line))
}

func shownLine(line []byte) string {
	line = bytes.TrimRight(line, "\r\n")
	if len(line) <= shownOfHit {
		return display.Visible(string(line))
	}
	return display.Visible(string(beginning(line, shownOfHit))) + "…"
}
