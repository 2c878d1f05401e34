package launch

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/sandbox/internal/helper"
)

// beginBwrap starts a call by bwrap after something else was done once bwrap had been
// told what to do.
func beginBwrap(t *testing.T, p sandbox.Profile, meanwhile func()) error {
	t.Helper()
	if _, _, err := chooseBwrap(t.Context(), p, nil); err != nil {
		t.Skipf("bwrap makes no namespaces here: %v", err)
	}
	streams := NewStreams(t)
	process := &Process{exited: make(chan struct{}), alone: make(chan struct{}), gone: make(chan struct{}), answers: make(chan helper.Event, 1)}
	process.command = Command{
		Argv: []string{"/bin/true"}, Dir: "/", Profile: bwrapped(p),
		Stdin: streams.Null, Stdout: streams.Out, Stderr: streams.Out,
	}
	spec, handed, err := process.command.spec()
	if err != nil {
		t.Fatal(err)
	}
	if process.via, err = newBwrap(process.command, &spec); err != nil {
		t.Fatal(err)
	}
	defer process.via.letGo()
	meanwhile()
	if err = process.begin(spec, handed); err == nil {
		err = process.hear(t.Context())
	}
	if err == nil {
		<-process.Exited()
		process.End()
	}
	return err
}

// What lies at a path when bwrap finds it may be another call's work.
func TestTheHelperSeesWhatWasPutInBwrapsWay(t *testing.T) {
	t.Parallel()
	out := t.TempDir()
	secret := filepath.Join(out, "secret")
	for name, c := range map[string]struct {
		swap func(ws string) error
		want string
	}{
		"nothing": {func(string) error { return nil }, ""},
		"a root is another folder": {func(ws string) error {
			return errors.Join(os.Rename(ws, ws+"-old"), os.Mkdir(ws, 0o755))
		}, "open root"},
		"a root is a link": {func(ws string) error {
			return errors.Join(os.Rename(ws, ws+"-old"), os.Symlink(out, ws))
		}, "sandbox unavailable"},
		"a folder on the way is a link": {func(ws string) error {
			return errors.Join(os.Rename(ws+"/repo", ws+"/old"), os.Symlink(out, ws+"/repo"))
		}, "sandbox unavailable"},
		"a folder on the way is another": {func(ws string) error {
			return errors.Join(os.Rename(ws+"/repo", ws+"/old"), os.Mkdir(ws+"/repo", 0o755), os.WriteFile(ws+"/repo/config", nil, 0o644))
		}, "fasten"},
		"a protected file is a link": {func(ws string) error {
			return errors.Join(os.Remove(ws+"/repo/config"), os.Symlink(secret, ws+"/repo/config"))
		}, "sandbox unavailable"},
		"a protected file is another": {func(ws string) error {
			return errors.Join(os.Link(secret, ws+"/repo/new"), os.Rename(ws+"/repo/new", ws+"/repo/config"))
		}, "fasten"},
		"a protected file has come": {func(ws string) error {
			return os.WriteFile(ws+"/repo/late", nil, 0o644)
		}, "it came while"},
		"a protected file is gone": {func(ws string) error { return os.Remove(ws + "/repo/config") }, ""},
		"a hidden file has come": {func(ws string) error {
			return os.WriteFile(ws+"/hidden", nil, 0o644)
		}, "hide"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			base, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			ws := filepath.Join(base, "ws")
			must.Do(t, errors.Join(os.MkdirAll(ws+"/repo", 0o755), os.WriteFile(ws+"/repo/config", nil, 0o644), os.WriteFile(secret, []byte("x"), 0o644)))
			p := sandbox.Profile{Mode: sandbox.WorkspaceWrite, Workspace: ws, Protect: []string{ws + "/repo/config", ws + "/repo/late"}, Hide: []string{ws + "/hidden"}}
			err = beginBwrap(t, p, func() {
				if err := c.swap(ws); err != nil {
					t.Error(err)
				}
			})
			if c.want == "" && err != nil || c.want != "" && (!errors.Is(err, sandbox.ErrUnavailable) || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// given starts a helper in namespaces of toold's own making, which hold less than what
// bwrap is asked for, and returns what it says of them.
func given(t *testing.T, made helper.Spec) error {
	t.Helper()
	streams := NewStreams(t)
	p := &Process{command: Command{Stdin: streams.Null, Stdout: streams.Out, Stderr: streams.Out}}
	theirs, err := p.connect()
	if err != nil {
		t.Fatal(err)
	}
	p.cmd = helperCommand(p.command, made, theirs)
	err = p.cmd.Start()
	theirs.Close()
	if err != nil {
		t.Skipf("no namespaces can be made here: %v", err)
	}
	spec := helper.Spec{Namespaces: true, Loopback: true, Probe: true, Dir: "/", Handed: 3}
	useBwrap(&spec)
	b := must.Get(spec.Encode())(t)
	must.Do(t, p.sendSpec(b, []*os.File{streams.Null, streams.Out, streams.Out}))
	_, err = p.await(t.Context())
	return err
}

func TestTheHelperRefusesLessThanBwrapWasAskedFor(t *testing.T) {
	t.Parallel()
	for want, made := range map[string]helper.Spec{
		"not the first process":              {Namespaces: true, Shared: true, Loopback: true},
		"the net namespace is the machine's": {Namespaces: true},
		"bwrap has left capabilities":        {Namespaces: true, Loopback: true},
	} {
		if err := given(t, made); !errors.Is(err, sandbox.ErrUnavailable) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
