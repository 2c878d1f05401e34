package files

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/toold/toold/policy"
	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/tools"
)

const (
	mostSearched = 30 * time.Second
	mostEntries  = 200_000 // entries of all directories
	mostOpened   = 50_000
	mostRead     = 1 << 30 // bytes of all files
	mostFile     = 10 << 20
)

// walk visits files directory by directory, sorted by name. It follows no links and counts what it omits.
type walk struct {
	o    Options
	io   tools.IO
	root target
	want pathPattern
	// visit receives the path below root of each matching file and directory. errEnough ends the walk.
	visit func(ctx context.Context, path string, e fs.DirEntry) error

	report   sandbox.Report // from the worker that opened the files
	most     int            // limit of entries
	entries  int
	opened   int
	read     int64
	omitted  map[omission]int
	usual    bool   // a directory such as .git was omitted
	stopped  string // why the walk is incomplete, or ""
	deadline time.Time
}

// omission is why a path was not searched. Notes are sorted by rank.
type omission struct {
	rank       int
	thing, why string
}

var (
	hidden    = omission{1, "path", "not searched: hidden by the sandbox"}
	unread    = omission{3, "path", "not searched: cannot be read"}
	irregular = omission{4, "path", "not searched: not a regular file"}
	link      = omission{5, "symbolic link", "not followed"}
)

func byRule(rule string) omission  { return omission{0, "path", "not searched: rule " + rule} }
func unsuited(why string) omission { return omission{2, "file", "not searched: " + why} }

var errEnough = errors.New("enough was found")

func (w *walk) run(ctx context.Context) error {
	w.omitted, w.deadline = make(map[omission]int), time.Now().Add(mostSearched)
	err := w.dir(ctx, "")
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

func (w *walk) dir(ctx context.Context, rel string) error {
	entries, err := w.list(ctx, rel)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := w.inTime(ctx); err != nil {
			return err
		}
		if err := w.entry(ctx, strings.TrimPrefix(rel+"/"+e.Name(), "/"), e); err != nil {
			return err
		}
	}
	return nil
}

func (w *walk) inTime(ctx context.Context) error {
	if ctx.Err() == nil && time.Now().After(w.deadline) {
		return w.stop(fmt.Sprintf("after %s", mostSearched))
	}
	return ctx.Err()
}

func (w *walk) stop(why string) error {
	w.stopped = why
	return errEnough
}

func (w *walk) entry(ctx context.Context, path string, e fs.DirEntry) error {
	inside, matches := e.IsDir() && w.want.mayHold(path), w.want.matches(path, e.IsDir())
	switch {
	case !inside && !matches:
		return nil
	case e.IsDir() && slices.Contains([]string{".git", ".hg", ".svn", "node_modules"}, e.Name()):
		w.usual = true
		return nil
	case e.Type()&fs.ModeSymlink != 0:
		w.omitted[link]++
		return nil
	case !e.IsDir() && !e.Type().IsRegular():
		w.omitted[irregular]++
		return nil
	case !w.may(path):
		return nil
	}
	if matches {
		if err := w.visit(ctx, path, e); err != nil {
			return err
		}
	}
	if !inside {
		return nil
	}
	return w.descend(ctx, path)
}

// descend walks a directory. If it cannot be read, the walk continues after it.
func (w *walk) descend(ctx context.Context, path string) error {
	err := w.dir(ctx, path)
	if err != nil && !errors.Is(err, errEnough) && ctx.Err() == nil {
		w.fault(err)
		return nil
	}
	return err
}

// may reports whether the call may read a path. It counts the path if not.
func (w *walk) may(path string) bool {
	e := policy.Effect{Kind: policy.Read, Path: filepath.Join(w.root.path, path), Canonical: filepath.Join(w.root.canonical, path)}
	if w.o.Profile.CanRead(e.Canonical) != nil {
		w.omitted[hidden]++
		return false
	}
	d := policy.Decision{Rule: "none"}
	if w.io.Judge != nil {
		d = w.io.Judge(e)
	}
	if d.Action != policy.Allow {
		w.omitted[byRule(d.Rule)]++
	}
	return d.Action == policy.Allow
}

// list returns the sorted entries of a directory. The limit applies to all lists together, since those of the parents
// remain in memory.
func (w *walk) list(ctx context.Context, rel string) ([]fs.DirEntry, error) {
	dir, held, err := w.o.Files.OpenDir(ctx, w.o.Profile, filepath.Join(w.root.canonical, rel))
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	w.report = held
	left := w.most - w.entries
	entries, err := dir.ReadDir(left + 1)
	if len(entries) > left {
		w.stopped = fmt.Sprintf("after %d names", w.most)
		if entries = entries[:left]; left == 0 {
			return nil, errEnough
		}
	}
	w.entries += len(entries)
	failed := err != nil && len(entries) == 0 && !errors.Is(err, io.EOF)
	if failed && rel == "" {
		return nil, fmt.Errorf("cannot list %s: %w", w.root.asked, err)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		w.fault(err)
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, nil
}

func (w *walk) open(ctx context.Context, path string) (*os.File, error) {
	if w.opened++; w.opened > mostOpened {
		return nil, w.stop(fmt.Sprintf("after %d files", mostOpened))
	}
	f, held, err := w.o.Files.Open(ctx, w.o.Profile, filepath.Join(w.root.canonical, path))
	if err == nil {
		w.report = held
	}
	return f, err
}

func (w *walk) fault(err error) {
	if _, is := errors.AsType[*sandbox.Denial](err); is {
		w.omitted[hidden]++
		return
	}
	w.omitted[unread]++
}

func (w *walk) notes() (lines []string) {
	if w.stopped != "" {
		lines = append(lines, fmt.Sprintf("[stopped %s: the search is incomplete; narrow path or the pattern of names]", w.stopped))
	}
	inOrder := func(a, b omission) int { return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.why, b.why)) }
	for _, o := range slices.SortedFunc(maps.Keys(w.omitted), inOrder) {
		lines = append(lines, fmt.Sprintf("[%s %s]", plural(w.omitted[o], o.thing), o.why))
	}
	if w.usual {
		lines = append(lines, "[.git, .hg, .svn and node_modules were omitted; name one in path to search it]")
	}
	return lines
}
