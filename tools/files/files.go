// Package files provides the tools read_file, write_file, edit_file, multi_edit,
// apply_patch, grep and glob.
//
// Files are opened and replaced by sandbox.Files, in the view of a command and with
// no more rights, under the canonical path that was judged, with no symbolic link
// followed on the way. What is read and written passes through the daemon.
package files

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/toold/toold/policy"
	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/sandbox/masks"
	"github.com/toold/toold/sandbox/protect"
	"github.com/toold/toold/tools"
)

// Options configure the tools.
type Options struct {
	Workspace string // absolute and canonical; relative paths start here
	Home      string // for a leading "~/"; empty: such paths are refused
	Profile   sandbox.Profile
	Files     *sandbox.Files   // opens and replaces them; nil will do for danger-full-access. The caller closes it.
	Masks     *masks.Tracker   // of what rules keep from programs; nil = nothing is masked
	Protect   *protect.Watcher // of what calls may not change; nil = nothing is protected. The caller closes it.
	MaxRead   int64            // bytes that one read returns; 0 = 1 MiB
	MaxWrite  int64            // bytes of a file that is written or edited; 0 = 16 MiB

	limit sandbox.Limit // of the call's client; see masked
}

// New makes the tools. They may be used concurrently: changes of one file
// wait for each other.
func New(o Options) []tools.Tool {
	o = o.filled()
	busy := &locks{held: make(map[string]*lock)}
	return []tools.Tool{reader{o}, writer{o, busy}, editor{o, busy}, multiEditor{editor{o, busy}}, newTextEditor(o, busy), patcher{o, busy}, grepper{o}, globber{o}}
}

// filled are the options with the defaults of those that are not set.
func (o Options) filled() Options {
	if o.MaxRead <= 0 {
		o.MaxRead = 1 << 20
	}
	if o.MaxWrite <= 0 {
		o.MaxWrite = 16 << 20
	}
	return o
}

// masked are the options of a call, with what its policy keeps from programs and the limit
// of its client.
func (o Options) masked(io tools.IO) (Options, error) {
	var err error
	o.limit = io.Limit
	o.Profile.Masks, err = o.Masks.Set(io.Policy, io.Opened)
	return o, err
}

// limited returns why the client of the call keeps it from reading or changing a path. The
// worker that opens it knows no limits, since it serves other calls as well.
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

// target is the file of a call.
type target struct {
	asked     string // as the caller wrote it
	path      string // absolute, lexically clean
	canonical string // with every symbolic link resolved
	astray    error  // why the links on the way must not be followed; nil otherwise
}

// longestPath is PATH_MAX of the kernel without its final NUL.
const longestPath = 4095

// target resolves the path of a file; see resolve.
func (o Options) target(asked string) (target, error) {
	if asked != "" && endsInDirectory(asked) {
		return target{}, problem("file_path", "%q names a directory; name a file in it", asked)
	}
	return o.resolve(asked)
}

// resolve resolves a path. Only a leading "~/" is expanded; everything else,
// "$HOME" and "~user" included, is the name of a file.
func (o Options) resolve(asked string) (target, error) {
	refuse := func(format string, args ...any) (target, error) {
		return target{}, &tools.ArgumentError{Field: "file_path", Problem: fmt.Sprintf(format, args...)}
	}
	path := asked
	switch rest, home := strings.CutPrefix(asked, "~/"); {
	case asked == "":
		return refuse("empty; name a file, relative to %s or absolute", o.Workspace)
	case len(asked) > longestPath:
		return refuse("it has %d bytes; a path has at most %d", len(asked), longestPath)
	case strings.ContainsFunc(asked, isControl):
		return refuse("%q holds control characters; for a file with such a name use bash", asked)
	case home && o.Home == "":
		return refuse("%q cannot be expanded: there is no home directory; use an absolute path", asked)
	case home:
		path = o.Home + "/" + rest
	case !filepath.IsAbs(asked):
		// Not filepath.Join: "link/.." must be left for Resolve to see.
		path = o.Workspace + "/" + asked
	}
	canonical, links, err := sandbox.ResolveLinks(path)
	if err != nil {
		return refuse("%v", err)
	}
	if strings.ContainsFunc(canonical, isControl) {
		return refuse("%q leads to %q, which holds control characters; for a file with such a name use bash", asked, canonical)
	}
	return target{asked, filepath.Clean(path), canonical, o.astray(asked, links)}, nil
}

// astray refuses links that a command would not see, or would see lead somewhere
// else: those in /proc are different for each process, and here they tell what
// the daemon has open. The policy decides first, so it is an error of the run.
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

func endsInDirectory(path string) bool {
	last := path[strings.LastIndexByte(path, '/')+1:]
	return last == "" || last == "." || last == ".."
}

func isControl(r rune) bool { return r < 0x20 || r == 0x7f }

// name is the path for people and models.
func (t target) name() string {
	if t.canonical != t.path {
		return t.asked + " (which is " + t.canonical + ")"
	}
	return t.asked
}

func (t target) effect(kind policy.Kind) policy.Effect {
	return policy.Effect{Kind: kind, Path: t.path, Canonical: t.canonical, Source: t.asked}
}

// report is what held a call: held, or when nothing was opened, the daemon's check
// of the path.
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

// failed makes the result of a call that did not do what was asked. Faults that
// other arguments would mend are classified as such.
func failed(ctx context.Context, err error) tools.Result {
	result := tools.Result{Text: err.Error(), IsError: true}
	fault := (*tools.ArgumentError)(nil)
	if denied := (*sandbox.Denial)(nil); errors.As(err, &denied) {
		exact := *denied
		exact.Exact = true
		result.Denials = []sandbox.Denial{exact}
	}
	switch {
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		result.Failure = tools.Cancelled
	case errors.As(err, &fault):
		result.Failure = tools.InvalidArguments
		result.Text = fault.Problem
	}
	return result
}

// problem is a fault of the arguments that shows when the file is read.
func problem(field, format string, args ...any) error {
	return &tools.ArgumentError{Field: field, Problem: fmt.Sprintf(format, args...)}
}
