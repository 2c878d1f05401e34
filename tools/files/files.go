// Package files provides the tools that read, change and search files. They open files through fileworker.Pool, with
// the rights of a command, by the canonical path that was judged, and follow no symbolic link. A change affects all
// its files or none, and is exactly the change that was shown.
package files

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toold/toold/internal/paths"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/sandbox/fileworker"
	"github.com/toold/toold/sandbox/masks"
	"github.com/toold/toold/sandbox/protect"
	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/argument"
)

// Options configure the tools.
type Options struct {
	Workspace string // absolute and canonical; base of relative paths
	Home      string // replaces a leading "~/"; "" = such paths are errors
	Profile   sandbox.Profile
	Files     *fileworker.Pool // nil only for danger-full-access; the caller closes it
	Masks     *masks.Tracker   // nil = none
	Protect   *protect.Watcher // nil = none; the caller closes it
	MaxRead   int64            // bytes of one read; 0 = 1 MiB
	MaxWrite  int64            // bytes of a file after a change; 0 = 16 MiB

	limit sandbox.Limit // see masked
}

// New returns the tools. They are safe for concurrent use: changes of one file are serialised.
func New(o Options) []tools.Tool {
	b := base{o.filled(), &locks{held: make(map[string]*lock), large: make(chan struct{}, mostLarge)}}
	return []tools.Tool{
		located(b, b.readDefinition(), b.read), located(b, writeDefinition(), b.write), located(b, editDefinition(), b.edit),
		located(b, multiDefinition(), b.multiEdit), located(b, textEditorDefinition(), b.textEdit),
		patchTool{located(b, patchDefinition(), b.patch)},
		located(b, grepDefinition(), b.grep), located(b, globDefinition(), b.glob),
	}
}

type tool[A any] struct {
	tools.Simple[A]
	base
}

func located[A any](b base, about tools.Definition, build func(A) (tools.Invocation, error)) tool[A] {
	return tool[A]{tools.Simple[A]{About: about, New: build}, b}
}

type base struct {
	o    Options
	busy *locks
}

func (o Options) filled() Options {
	if o.MaxRead <= 0 {
		o.MaxRead = 1 << 20
	}
	if o.MaxWrite <= 0 {
		o.MaxWrite = 16 << 20
	}
	return o
}

func (b base) Location(args json.RawMessage) ([]string, bool) {
	return []string{b.o.expanded(argument.Path(args))}, false
}

type patchTool struct{ tool[patchArguments] }

func (p patchTool) Location(args json.RawMessage) (paths []string, runs bool) {
	a, err := argument.Decode[patchArguments](args)
	if err != nil {
		return nil, false
	}
	sections, err := a.sections()
	if err != nil {
		return nil, false
	}
	for _, s := range sections {
		paths = append(paths, p.o.expanded(s.path))
		if s.to != "" {
			paths = append(paths, p.o.expanded(s.to))
		}
	}
	return paths, false
}

func (o Options) expanded(path string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok && o.Home != "" {
		return o.Home + "/" + rest
	}
	return path
}

// masked returns the options of a call, with the masks of its policy and the limit of its client.
func (o Options) masked(ctx context.Context, io tools.IO) (Options, error) {
	var err error
	o.limit = io.Limit
	o.Profile.Masks, err = o.Masks.Set(ctx, io.Policy, io.Opened)
	return o, err
}

// limited applies the limit of the call's client, which the shared file worker does not have.
func (o Options) limited(canonical string, change bool) error {
	if o.limit.IsZero() {
		return nil
	}
	p := o.Profile.Within(o.limit)
	if !change {
		return p.CanRead(canonical)
	}
	if kept := o.limit.Keeps(canonical); kept != "" {
		return &sandbox.Denial{
			Kind: sandbox.DeniedFile, Op: "write", Target: canonical, Setting: "sandbox",
			Hint: "the sandbox that the agent itself has asked for keeps " + kept + " as it is",
		}
	}
	return p.CanWrite(canonical)
}

type target struct {
	asked     string // as the client sent it
	path      string // absolute and clean
	canonical string // without symbolic links
	astray    error  // why its links must not be followed, or nil
	link      bool   // the path itself is a symbolic link
}

// longestPath is PATH_MAX without its final NUL, in bytes.
const longestPath = 4095

func (o Options) target(asked string) (target, error) {
	if asked != "" && endsInDirectory(asked) {
		return target{}, problem("file_path", "%q names a directory; name a file in it", asked)
	}
	return o.resolve(asked)
}

// resolve resolves a path. It expands only a leading "~/".
func (o Options) resolve(asked string) (target, error) {
	refuse := func(format string, args ...any) (target, error) {
		return target{}, problem("file_path", format, args...)
	}
	path := asked
	switch rest, home := strings.CutPrefix(asked, "~/"); {
	case asked == "":
		return refuse("empty; name a file, relative to %s or absolute", o.Workspace)
	case len(asked) > longestPath:
		return refuse("it has %d bytes; a path has at most %d", len(asked), longestPath)
	case strings.ContainsFunc(asked, isControl):
		return refuse("%q contains control characters; for a file with such a name use bash", asked)
	case home && o.Home == "":
		return refuse("%q cannot be expanded: there is no home directory; use an absolute path", asked)
	case home:
		path = o.Home + "/" + rest
	case !filepath.IsAbs(asked):
		// filepath.Join would remove "link/..".
		path = o.Workspace + "/" + asked
	}
	canonical, rest, links, err := paths.ResolveUntil(path, o.hidden()...)
	if rest != "" { // what is hidden is as if it were empty
		canonical += filepath.Clean("/" + rest)
	}
	if err != nil {
		return refuse("%v", err)
	}
	if strings.ContainsFunc(canonical, isControl) {
		return refuse("%q leads to %q, which contains control characters; for a file with such a name use bash", asked, canonical)
	}
	return target{asked, filepath.Clean(path), canonical, o.astray(asked, links), isLink(path, links)}, nil
}

// hidden returns the paths below which nothing may depend on what exists.
func (o Options) hidden() []string {
	if o.Profile.Mode == sandbox.FullAccess {
		return nil
	}
	return o.Profile.Hide
}

func isLink(path string, links []string) bool {
	if len(links) == 0 {
		return false
	}
	dir, name := filepath.Split(strings.TrimRight(path, "/"))
	dir, err := paths.Resolve(dir) // Clean would remove "link/.."
	return err == nil && slices.Contains(links, filepath.Join(dir, name))
}

// astray returns an error for links that a command would resolve differently: those in /proc, which lead to the
// daemon's own files here, and hidden ones. Execute returns it after the policy's decision.
func (o Options) astray(asked string, links []string) error {
	for _, link := range links {
		if strings.HasPrefix(link, "/proc/") {
			return fmt.Errorf("cannot follow %s: %s is another link for each process; use bash", asked, link)
		}
		if err := o.Profile.CanRead(link); err != nil {
			return fmt.Errorf("cannot follow %s: %w", asked, err)
		}
	}
	return nil
}

const pathSchema = `"file_path":{"type":"string","description":"The file, relative to the workspace or absolute. A leading ~/ is the home directory."},`

func endsInDirectory(path string) bool {
	last := path[strings.LastIndexByte(path, '/')+1:]
	return last == "" || last == "." || last == ".."
}

func isControl(r rune) bool { return r < 0x20 || r == 0x7f }

func (t target) name() string {
	if t.canonical != t.path {
		return t.asked + " (which is " + t.canonical + ")"
	}
	return t.asked
}

func (t target) effect(kind policy.Kind) policy.Effect {
	return policy.Effect{Kind: kind, Path: t.path, Canonical: t.canonical, Source: t.asked}
}

// report returns held or, if nothing was opened, the daemon's own check of the path.
func (o Options) report(held sandbox.Report) *sandbox.Report {
	if held.Profile != "" {
		return &held
	}
	r := &sandbox.Report{Profile: o.Profile.Mode.String(), Enforced: []string{}, Tier: "none"}
	if o.Profile.Mode != sandbox.FullAccess {
		r.Enforced, r.Tier = []string{"path-check"}, "path"
	}
	return r
}

func failed(ctx context.Context, err error) tools.Result {
	result := tools.Result{Text: err.Error(), IsError: true}
	fault, isArgument := errors.AsType[*argument.Error](err)
	if denied, is := errors.AsType[*sandbox.Denial](err); is {
		exact := *denied
		exact.Exact = true
		result.Denials = []sandbox.Denial{exact}
	}
	switch {
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		result.Failure = tools.Cancelled
	case isArgument:
		result.Failure = tools.InvalidArguments
		result.Text = fault.Problem
	}
	return result
}

func problem(field, format string, args ...any) error {
	return &argument.Error{Field: field, Problem: fmt.Sprintf(format, args...)}
}
