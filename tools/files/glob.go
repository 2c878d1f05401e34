package files

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/toold/toold/internal/display"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/argument"
)

const (
	usualFound = 250 // results without a limit argument
	mostFound  = 10_000
)

type globArguments struct {
	Pattern string `json:"pattern" required:"true"`
	Path    string `json:"path" alias:"dir_path,directory"`
	Limit   *int64 `json:"limit" alias:"head_limit,max_results"`
	argument.Ignored
}

func globDefinition() tools.Definition {
	return tools.Definition{
		Name: "glob",
		Description: "Lists the files and directories whose path matches a pattern, sorted by path, directories with a slash at the end. " +
			"** stands for any number of directories: **/*.go finds all Go files, *.go those in path itself. " +
			"Leaves out .git, node_modules and what the policy does not let you read, and follows no links.",
		Parameters: argument.Schema(`"pattern"`, `"pattern":{"type":"string","minLength":1,"description":"The pattern, relative to path, with *, ?, [a-z], {a,b} and **."},`+
			`"path":{"type":"string","description":"The directory to search, relative to the workspace or absolute. Default: the workspace."},`+
			`"limit":{"type":"integer","minimum":1,"maximum":%d,"description":"Number of paths to return. Default: %d."}`, mostFound, usualFound),
	}
}

func (b base) glob(a globArguments) (_ tools.Invocation, err error) {
	s := search{o: b.o, text: "List the paths that match " + a.Pattern + " in "}
	if err := s.prepare(a.Path, a.Limit); err != nil {
		return nil, err
	}
	if s.names, err = newPathPattern("pattern", a.Pattern, s.root.path, false); err != nil {
		return nil, err
	}
	s.find = s.list
	return s, nil
}

func (s search) list(ctx context.Context, w *walk, found *findings) error {
	w.visit = func(_ context.Context, path string, e fs.DirEntry) error {
		path = s.shown(path)
		if e.IsDir() {
			path += "/"
		}
		return found.add(path)
	}
	return w.run(ctx)
}

type search struct {
	o     Options
	root  target
	names pathPattern
	limit int
	text  string
	none  string
	find  func(ctx context.Context, w *walk, found *findings) error
}

func (s *search) prepare(path string, limit *int64) (err error) {
	s.limit, s.none = usualFound, "No path matches."
	switch {
	case limit == nil:
	case *limit < 1 || *limit > mostFound:
		return problem("limit", "%d is not between 1 and %d", *limit, mostFound)
	default:
		s.limit = int(*limit)
	}
	if path == "" {
		path = "."
	}
	s.root, err = s.o.resolve(path)
	if fault, is := errors.AsType[*argument.Error](err); is {
		fault.Field = "path"
	}
	return err
}

func (s search) Traits() tools.Traits { return tools.Traits{ReadOnly: true} }

// Effects returns the read of the directory. Execute asks for a decision on each path below it.
func (s search) Effects() []policy.Effect { return []policy.Effect{s.root.effect(policy.Read)} }

func (s search) Text() string { return display.Visible(s.text + s.root.name()) }

func (s search) Execute(ctx context.Context, io tools.IO) tools.Result {
	var err error
	if s.o, err = s.o.masked(ctx, io); err == nil {
		err = s.root.astray
	}
	w := &walk{o: s.o, io: io, root: s.root, want: s.names, most: mostEntries}
	found := &findings{most: s.limit}
	if err == nil {
		err = s.find(ctx, w, found)
	}
	var result tools.Result
	switch {
	case err != nil && ctx.Err() == nil:
		result = failed(ctx, s.o.instead(ctx, io, s.root, err))
	case err != nil:
		result = failed(ctx, err)
	default:
		result.Text = found.text(s.none, w.notes())
	}
	result.Sandbox = s.o.report(w.report)
	return result
}

func (s search) shown(path string) string {
	return display.Line(s.o.relative(filepath.Join(s.root.path, path)))
}

type findings struct {
	none  string // result if nothing is found
	most  int
	lines []string
	bytes int
	full  bool
}

// add adds a result, or returns errEnough if it does not fit.
func (f *findings) add(line string) error {
	if len(f.lines) == 0 && len(line) > usualBytes { // a result with much context: at least its beginning is returned
		f.lines, f.full = []string{string(beginning([]byte(line), usualBytes)) + "…"}, true
		return errEnough
	}
	if len(f.lines) >= f.most || f.bytes+len(line) > usualBytes {
		f.full = true
		return errEnough
	}
	f.lines = append(f.lines, line)
	f.bytes += len(line) + 1
	return nil
}

func (f *findings) text(none string, notes []string) string {
	lines := f.lines
	if len(lines) == 0 {
		lines = []string{cmp.Or(f.none, none)}
	}
	if f.full {
		raise := ""
		if len(f.lines) == f.most && f.most < mostFound {
			raise = fmt.Sprintf(", or raise limit (at most %d)", mostFound)
		}
		notes = append([]string{fmt.Sprintf("[only the first %d results; narrow path or the pattern%s]", len(f.lines), raise)}, notes...)
	}
	return strings.Join(append(lines, notes...), "\n") + "\n"
}
