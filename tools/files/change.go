package files

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/toold/toold/internal/display"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/sandbox/escalation"
	"github.com/toold/toold/sandbox/fileworker"
	"github.com/toold/toold/tools"
)

const (
	previewDiff = 256 << 10
	resultDiff  = 32 << 10
)

// change changes all its files or none. It is not safe for concurrent use.
type change struct {
	o       Options
	busy    *locks
	verb    string // in a preview: "Write 7 bytes to"
	steps   []step // one per file
	effects []policy.Effect
	shown   string // fingerprint of the preview
	size    int64  // bytes counted; see count
	large   bool

	done func([]state) string // describes a change of several files; may be nil
}

type step struct {
	file   target
	fresh  bool // create a missing file and its directories
	absent bool // the file must not exist
	remove bool
	to     target // new path; zero = not moved

	// unread means that the file did not exist when the call was judged, so no rule judged reading it.
	unread bool

	grows bool // compute may make a small file large

	compute func(ctx context.Context, file target, before []byte) (made, error) // nil keeps the content
}

func (p step) paths() []target {
	if p.to.canonical != "" {
		return []target{p.file, p.to}
	}
	return []target{p.file}
}

func (c *change) paths() (all []target) {
	for _, p := range c.steps {
		all = append(all, p.paths()...)
	}
	return all
}

type made struct {
	after        []byte
	done         string // for the result
	replacements int64
}

type state struct {
	made
	step
	old    *os.File    // nil if missing
	seen   fs.FileInfo // before reading
	before []byte
	report sandbox.Report // of the worker that opened it
}

func (s state) did() tools.File {
	f := tools.File{
		Path: s.file.canonical, Operation: "write", Bytes: int64(len(s.after)), Lines: countLines(s.after), Replacements: s.replacements,
	}
	switch {
	case s.old == nil:
		f.Operation = "create"
	case s.remove:
		f.Operation = "remove"
	case s.to.canonical != "":
		f.Path, f.Operation, f.From = s.to.canonical, "move", s.file.canonical
	case !s.fresh:
		f.Operation = "edit"
	}
	return f
}

func closeAll(states []state) {
	for _, s := range states {
		s.old.Close() // nil is allowed
	}
}

func (s state) diff(most int) string {
	from, to := s.file.asked, s.file.asked
	switch {
	case s.old == nil:
		from = "/dev/null"
	case s.remove:
		to = "/dev/null"
	case s.to.canonical != "":
		to = s.to.asked
		if string(s.before) == string(s.after) {
			return fmt.Sprintf("rename from %s\nrename to %s\n", from, to)
		}
	}
	return unified(from, to, string(s.before), string(s.after), most)
}

func diffs(states []state, most int) string {
	var all strings.Builder
	for _, s := range states {
		all.WriteString(s.diff(max(most-all.Len(), 0)))
	}
	return all.String()
}

func (c *change) Effects() []policy.Effect { return c.effects }

func (c *change) Text() string { return display.Visible(c.verb + " " + c.names()) }

// Preview returns the change to show. Execute then refuses to make another one.
func (c *change) Preview(ctx context.Context) tools.Preview {
	defer c.forget()
	states, err := c.plan(ctx)
	defer closeAll(states)
	c.shown = fingerprint(states, err)
	p := tools.Preview{Text: c.Text()}
	if err == nil {
		p.Diff = display.Visible(diffs(states, previewDiff))
		err = c.writable() // an escalation may change this
	}
	if err != nil {
		p.Text += display.Visible(fmt.Sprintf(". As it is now this would fail: %v", err))
	}
	return p
}

func (c *change) names() string {
	var list []string
	for _, file := range c.paths() {
		list = append(list, file.name())
	}
	return strings.Join(list, ", ")
}

func (c *change) writable() error {
	for _, file := range c.paths() {
		if err := c.o.Profile.CanWrite(file.canonical); err != nil && file.astray == nil {
			return err
		}
	}
	return nil
}

func (c *change) Traits() tools.Traits { return tools.Traits{} }

func (c *change) EscalationLimits(b escalation.Limits) escalation.Limits {
	return escalation.Limits{Write: b.Write, Protect: b.Protect}
}

func (c *change) Execute(ctx context.Context, io tools.IO) tools.Result {
	if io.Escalation != nil {
		c.o.Profile = io.Escalation.Escalate(c.o.Profile)
		c.o.Files = new(fileworker.Pool) // closed when the call ends
		defer c.o.Files.Close()
	}
	defer c.forget()
	states, err := c.carryOut(ctx, io)
	result := tools.Result{}
	if err != nil {
		result = failed(ctx, err)
	} else {
		c.describe(&result, states)
	}
	held := sandbox.Report{}
	for _, s := range states {
		if s.report.Profile != "" {
			held = s.report
		}
	}
	result.Sandbox = c.o.report(held)
	return result
}

func (c *change) describe(result *tools.Result, states []state) {
	result.Text = states[0].done
	if c.done != nil {
		result.Text = c.done(states)
	}
	for _, s := range states {
		result.Files = append(result.Files, s.did())
	}
	if len(states) == 1 {
		result.File, result.Files = &result.Files[0], nil
	}
	if result.Diff = diffs(states, resultDiff); result.Diff != "" {
		result.Text += "\n\n" + result.Diff
	}
}

// carryOut makes the change as programs would see it. It returns the states closed.
func (c *change) carryOut(ctx context.Context, io tools.IO) (states []state, err error) {
	if c.o, err = c.o.masked(ctx, io); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err := c.permitted(io.Approved); err != nil {
		return nil, err
	}
	// Protection must not revert what a person approved.
	watch, err := c.o.Protect.Begin(ctx, append([]string{}, io.Approved...), nil)
	if err != nil {
		return nil, err
	}
	defer watch.End()
	release, err := c.acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	states, err = c.plan(ctx)
	defer closeAll(states)
	if ctx.Err() != nil {
		return states, ctx.Err()
	}
	if c.shown != "" && c.shown != fingerprint(states, err) {
		changed := fmt.Errorf("%s was not changed: it has changed since it was shown to the person who decided; read it and make the call again", c.names())
		if err != nil {
			changed = fmt.Errorf("%w (as it is now: %w)", changed, err)
		} else if was, failed := strings.CutPrefix(c.shown, failure); failed {
			changed = fmt.Errorf("%w (as it was then: %s)", changed, was)
		}
		return states, changed
	}
	if err != nil {
		return states, err
	}
	a := application{o: c.o, states: states}
	a.o.Profile.Protect = watch.Existing()
	return states, a.apply(ctx)
}

func (c *change) permitted(granted []string) error {
	for _, file := range c.paths() {
		if err := c.o.limited(file.canonical, true); err != nil {
			return err
		}
		if err := c.protected(file, granted); err != nil {
			return err
		}
	}
	return c.writable()
}

// acquire locks the files in the order of their paths, so that calls do not deadlock.
func (c *change) acquire(ctx context.Context) (release func(), err error) {
	var names []string
	for _, file := range c.paths() {
		names = append(names, file.canonical)
	}
	slices.Sort(names)
	var held []func()
	release = func() {
		for _, let := range held {
			let()
		}
	}
	for _, name := range slices.Compact(names) {
		let, err := c.busy.acquire(ctx, name)
		if err != nil {
			release()
			return nil, err
		}
		held = append(held, let)
	}
	return release, nil
}

func (c *change) protected(file target, granted []string) error {
	name := c.o.Protect.Name(file.canonical)
	if name == "" || c.o.Profile.Mode != sandbox.WorkspaceWrite || slices.Contains(granted, file.canonical) {
		return nil
	}
	return &sandbox.Denial{
		Kind: sandbox.DeniedProtected, Op: "write", Target: file.canonical, Setting: "sandbox.protect",
		Hint: fmt.Sprintf("other programs run or obey %s (sandbox.protect in the configuration); only a person can allow this call, so ask the user to approve or make the change", name),
	}
}

// plan reads the files and computes their new content, which may take long. The caller must close the states, also on
// error.
func (c *change) plan(ctx context.Context) (states []state, err error) {
	for _, p := range c.steps {
		s, err := c.planOne(ctx, p)
		states = append(states, s)
		if err != nil {
			return states, err
		}
	}
	return states, nil
}

func (c *change) planOne(ctx context.Context, p step) (s state, err error) {
	s.step = p
	for _, file := range p.paths() {
		switch {
		case file.astray != nil:
			return s, file.astray
		case file.link && (p.remove || p.to.canonical != ""):
			return s, problem("file_path", "nothing changed: %s is a symbolic link to %s, and a link is neither removed nor moved; name that, or use bash for the link", file.asked, file.canonical)
		}
	}
	if err := c.load(ctx, &s); err != nil {
		return s, err
	}
	switch {
	case p.compute != nil:
		s.made, err = p.compute(ctx, p.file, s.before)
	case !p.remove:
		s.after = s.before
	}
	if err == nil && int64(len(s.after)) > c.o.MaxWrite {
		err = problem("file_path", "%s would have %d bytes; at most %d can be written", p.file.name(), len(s.after), c.o.MaxWrite)
	}
	if s.old == nil {
		s.done += " (created)"
	}
	s.done += "."
	if err == nil {
		err = c.count(ctx, int64(len(s.after)), false)
	}
	return s, err
}

func (c *change) load(ctx context.Context, s *state) (err error) {
	s.old, s.report, err = c.o.Files.Open(ctx, c.o.Profile, s.file.canonical)
	switch {
	case errors.Is(err, fs.ErrNotExist) && s.fresh:
		return nil
	case s.absent && err == nil:
		return problem("file_path", "%s exists already; nothing changed. Update it, or delete it in a call before", s.file.name())
	case err != nil:
		return err
	case s.unread:
		return fmt.Errorf("%s was not written: it appeared after the call was judged; make the call again", s.file.name())
	}
	if s.seen, err = s.old.Stat(); err == nil {
		err = c.read(ctx, s)
	}
	if err == nil && s.to.canonical != "" {
		err = c.free(ctx, s.to)
	}
	return err
}

func (c *change) free(ctx context.Context, to target) error {
	there, _, err := c.o.Files.Open(ctx, c.o.Profile, to.canonical)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	}
	there.Close()
	return problem("file_path", "nothing can be moved to %s, which exists already; nothing changed", to.name())
}

const failure = "error: "

// fingerprint identifies the state before a change. It is never empty.
func fingerprint(states []state, err error) string {
	if err != nil {
		return failure + err.Error()
	}
	all := sha256.New()
	for _, s := range states {
		fmt.Fprintf(all, "%v %x\n", s.old != nil, sha256.Sum256(s.before))
	}
	return fmt.Sprintf("%x", all.Sum(nil))
}
