package files

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"

	"github.com/toold/toold/policy"
	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/sandbox/widen"
	"github.com/toold/toold/tools"
)

// How much of a diff a person is shown, and a result carries.
const (
	previewDiff = 256 << 10
	resultDiff  = 32 << 10
)

// change is one call of write_file or edit_file. What differs between the two
// is how the new content comes of the old one.
//
// It is used by one goroutine at a time, like every Invocation of this package.
type change struct {
	o     Options
	busy  *locks
	file  target
	verb  string // for a preview: "Write 7 bytes to"
	fresh bool   // a file that does not exist is made, with its folders

	// unread: there was no file when the call was judged, so that nobody judged
	// whether one may be read.
	unread bool

	compute func(file target, before []byte) (made, error)

	effects []policy.Effect
	shown   string // fingerprint of what the preview was made of
}

// made is the new content of a file.
type made struct {
	after        []byte
	done         string // says in a result what was done
	replacements int64
}

// state is a file as it is now and as it is to be.
type state struct {
	made
	old    *os.File    // nil when there is none
	seen   fs.FileInfo // of old, before it was read
	before []byte
	held   sandbox.Report // what confined who opened it
}

// did describes the change in a return.
func (c *change) did(s state) *tools.File {
	f := &tools.File{
		Path: c.file.canonical, Operation: "write", Bytes: int64(len(s.after)), Lines: countLines(s.after), Replacements: s.replacements,
	}
	switch {
	case s.old == nil:
		f.Operation = "create"
	case !c.fresh:
		f.Operation = "edit"
	}
	return f
}

func (s state) close() {
	if s.old != nil {
		s.old.Close()
	}
}

// diff labels a new file as patch expects it.
func (c *change) diff(s state, most int) string {
	from := c.file.asked
	if s.old == nil {
		from = "/dev/null"
	}
	return unified(from, c.file.asked, string(s.before), string(s.after), most)
}

func (c *change) Effects() []policy.Effect { return c.effects }

// Preview reads the file to show what would change. Execute then refuses to
// change anything else.
func (c *change) Preview() tools.Preview {
	s, err := c.plan(context.Background())
	defer s.close()
	c.shown = fingerprint(s, err)
	p := tools.Preview{Text: tools.Visible(c.verb + " " + c.file.name())}
	if err == nil {
		p.Diff = tools.Visible(c.diff(s, previewDiff))
		err = c.o.Profile.CanWrite(c.file.canonical) // which the answer may change
	}
	if err != nil {
		p.Text += tools.Visible(fmt.Sprintf(". As it is now this would fail: %v", err))
	}
	return p
}

// Widens tells that a folder may be added, with the file in it.
func (c *change) Widens(b widen.Bounds) widen.Bounds {
	return widen.Bounds{Write: b.Write, Protect: b.Protect}
}

func (c *change) Execute(ctx context.Context, io tools.IO) tools.Result {
	if io.Widen != nil {
		c.o.Profile = io.Widen.Widen(c.o.Profile)
		c.o.Files = new(sandbox.Files) // which ends with the call
		defer c.o.Files.Close()
	}
	s, err := c.underMasks(ctx, io)
	result := tools.Result{Text: s.done}
	if err != nil {
		result = failed(ctx, err)
	} else {
		result.File = c.did(s)
		if result.Diff = c.diff(s, resultDiff); result.Diff != "" {
			result.Text += "\n\n" + result.Diff
		}
	}
	result.Sandbox = c.o.report(s.held)
	return result
}

// underMasks makes the change in the view of programs.
func (c *change) underMasks(ctx context.Context, io tools.IO) (s state, err error) {
	if c.o, err = c.o.masked(io); err != nil {
		return s, err
	}
	return c.carryOut(ctx, io.Granted)
}

// carryOut makes the change. The state it returns is closed.
func (c *change) carryOut(ctx context.Context, granted []string) (s state, err error) {
	if ctx.Err() != nil {
		return s, ctx.Err()
	}
	if err := c.o.limited(c.file.canonical, true); err != nil {
		return s, err
	}
	if err := c.protected(granted); err != nil {
		return s, err
	}
	if err := c.o.Profile.CanWrite(c.file.canonical); err != nil && c.file.astray == nil {
		return s, err
	}
	// What a person has granted is not taken from this call when another runs.
	watch := c.o.Protect.Begin(append([]string{}, granted...))
	defer watch.End()
	release, err := c.busy.acquire(ctx, c.file.canonical)
	if err != nil {
		return s, err
	}
	defer release()
	s, err = c.plan(ctx)
	defer s.close()
	if c.shown != "" && c.shown != fingerprint(s, err) {
		return s, fmt.Errorf("%s was not changed: it has changed since it was shown to the person who decided; read it and make the call again", c.file.name())
	}
	if err != nil {
		return s, err
	}
	return s, c.apply(ctx, s, watch.Existing())
}

// protected refuses a file that no call may change unless a person has said so.
func (c *change) protected(granted []string) error {
	name := c.o.Protect.Name(c.file.canonical)
	if name == "" || c.o.Profile.Mode != sandbox.WorkspaceWrite || slices.Contains(granted, c.file.canonical) {
		return nil
	}
	return &sandbox.Denial{
		Kind: sandbox.DeniedProtected, Op: "write", Target: c.file.canonical, Setting: "sandbox.protect",
		Hint: fmt.Sprintf("other programs run or obey what stands in %s (sandbox.protect in the configuration); a person has to allow this very call, so let the policy ask for it, or ask the user to change it", name),
	}
}

// apply changes the file, unless it already is as it is to be. What is protected
// and there stays as it is, whatever way leads to it.
func (c *change) apply(ctx context.Context, s state, protected []string) error {
	if s.old != nil && string(s.before) == string(s.after) {
		return nil
	}
	profile := c.o.Profile
	profile.Protect = protected
	return c.o.Files.Replace(ctx, profile, c.file.canonical, sandbox.Replacement{Data: s.after, Old: s.old, Seen: s.seen, Parents: c.fresh})
}

// plan reads the file and computes its new content. The state is to be closed
// also when there is an error.
func (c *change) plan(ctx context.Context) (s state, err error) {
	if c.file.astray != nil {
		return s, c.file.astray
	}
	if err := c.load(ctx, &s); err != nil {
		return s, err
	}
	s.made, err = c.compute(c.file, s.before)
	if err == nil && int64(len(s.after)) > c.o.MaxWrite {
		err = problem("file_path", "%s would have %d bytes; at most %d can be written", c.file.name(), len(s.after), c.o.MaxWrite)
	}
	if s.old == nil {
		s.done += " (created)"
	}
	s.done += "."
	return s, err
}

// load reads the file, if there is one and may be none.
func (c *change) load(ctx context.Context, s *state) (err error) {
	s.old, s.held, err = c.o.Files.Open(ctx, c.o.Profile, c.file.canonical)
	switch {
	case errors.Is(err, fs.ErrNotExist) && c.fresh:
		return nil
	case err != nil:
		return err
	case c.unread:
		return fmt.Errorf("%s was not written: it appeared after the call was judged; make the call again", c.file.name())
	}
	if s.seen, err = s.old.Stat(); err == nil {
		s.before, err = c.read(s.old, s.seen.Size())
	}
	return err
}

// read takes size for a hint: the file may grow meanwhile.
func (c *change) read(f *os.File, size int64) ([]byte, error) {
	tooLarge := problem("file_path", "%s has more than the %d bytes that this tool handles; use bash", c.file.name(), c.o.MaxWrite)
	if size > c.o.MaxWrite {
		return nil, tooLarge
	}
	var data bytes.Buffer
	data.Grow(int(size) + bytes.MinRead)
	if _, err := data.ReadFrom(io.LimitReader(f, c.o.MaxWrite+1)); err != nil {
		return nil, err
	}
	if int64(data.Len()) > c.o.MaxWrite {
		return nil, tooLarge
	}
	return data.Bytes(), nil
}

// fingerprint identifies what a change starts from. It is never empty.
func fingerprint(s state, err error) string {
	if err != nil {
		return "error: " + err.Error()
	}
	return fmt.Sprintf("%v %x", s.old != nil, sha256.Sum256(s.before))
}
