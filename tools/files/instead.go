package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toold/toold/internal/display"
	"github.com/toold/toold/internal/spell"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/tools"
)

const (
	mostNames  = 4096 // entries read from a directory
	shownNames = 20
)

// instead adds names to the error for a file that could not be opened: those in the directory, or those similar to
// the missing one, which this call may read.
func (o Options) instead(ctx context.Context, io tools.IO, file target, err error) error {
	var denied *sandbox.Denial
	if ctx.Err() != nil || errors.As(err, &denied) {
		return err
	}
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w%s", err, o.near(ctx, io, file))
	}
	names, listed := o.names(ctx, io, file.canonical)
	if !listed {
		return err
	}
	list := "it is empty"
	if len(names) > 0 {
		list = "it contains " + strings.Join(names[:min(len(names), shownNames)], ", ")
	}
	if n := len(names) - shownNames; n > 0 {
		list += fmt.Sprintf(" and %d more", n)
	}
	return fmt.Errorf("%w; %s. Read a file in it, or list it with glob: {\"path\": %q, \"pattern\": \"*\"}", err, list, file.asked)
}

func (o Options) near(ctx context.Context, io tools.IO, file target) string {
	var names []string
	dir, missing, listed := file.canonical, "", false
	for !listed && dir != "/" {
		dir, missing = filepath.Dir(dir), filepath.Base(dir)
		names, listed = o.names(ctx, io, dir)
	}
	find := fmt.Sprintf("glob finds files by name: {\"pattern\": \"**/%s\"}", filepath.Base(file.path))
	near := spell.Near(missing, names)
	if len(near) == 0 {
		return "; " + find
	}
	for i, name := range near {
		near[i] = o.relative(filepath.Join(dir, name))
	}
	return fmt.Sprintf("; did you mean %s? %s", strings.Join(near, " or "), find)
}

func (o Options) relative(path string) string {
	if rest, ok := strings.CutPrefix(path, o.Workspace+"/"); ok {
		return rest
	}
	return path
}

// names returns names in a directory. listed reports whether the call may read it.
func (o Options) names(ctx context.Context, io tools.IO, dir string) (names []string, listed bool) {
	if !mayRead(io, dir) {
		return nil, false
	}
	f, _, err := o.Files.OpenDir(ctx, o.Profile, dir)
	if err != nil {
		return nil, false
	}
	defer f.Close()
	entries, _ := f.ReadDir(mostNames) // a part is enough
	for _, e := range entries {
		name := e.Name()
		if !mayRead(io, filepath.Join(dir, name)) || o.Profile.CanRead(filepath.Join(dir, name)) != nil {
			continue
		}
		if e.IsDir() {
			name += "/"
		}
		names = append(names, display.Visible(strings.ReplaceAll(name, "\n", `\n`)))
	}
	slices.Sort(names)
	return names, true
}

func mayRead(io tools.IO, path string) bool {
	if io.Judge == nil {
		return false
	}
	return io.Judge(policy.Effect{Kind: policy.Read, Path: path, Canonical: path}).Action == policy.Allow
}
