package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toold/toold/sandbox/internal/helper"
)

// beginBwrap starts a call by bwrap after something else was done once bwrap had been
// told what to do.
func beginBwrap(t *testing.T, p Profile, meanwhile func()) error {
	t.Helper()
	if err := trustBwrap(p); err != nil {
		t.Skip(err)
	}
	streams := NewStreams(t)
	process := &Process{exited: make(chan struct{}), alone: make(chan struct{}), gone: make(chan struct{}), answers: make(chan helper.Event, 1)}
	process.command = Command{
		Argv: []string{"/bin/true"}, Dir: "/", Profile: p.bwrapped(),
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
			if err := errors.Join(os.MkdirAll(ws+"/repo", 0o755), os.WriteFile(ws+"/repo/config", nil, 0o644), os.WriteFile(secret, []byte("x"), 0o644)); err != nil {
				t.Fatal(err)
			}
			p := Profile{Mode: WorkspaceWrite, Workspace: ws, Protect: []string{ws + "/repo/config", ws + "/repo/late"}, Hide: []string{ws + "/hidden"}}
			err = beginBwrap(t, p, func() {
				if err := c.swap(ws); err != nil {
					t.Error(err)
				}
			})
			if c.want == "" && err != nil || c.want != "" && (!errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// The helper takes no rights that bwrap should not have left: it would give them to
// nobody, but whoever left them may have left more.
func TestTheHelperRefusesRightsThatItDoesNotNeed(t *testing.T) {
	t.Parallel()
	streams := NewStreams(t)
	p := &Process{command: Command{Stdin: streams.Null, Stdout: streams.Out, Stderr: streams.Out}}
	spec := helper.Spec{Namespaces: true, Loopback: true, Given: true, Outside: outside(false), Probe: true, Dir: "/"}
	err := p.begin(spec, nil) // toold itself makes the namespaces, and leaves rights
	if err == nil {
		_, err = p.await(t.Context())
	}
	if err == nil || strings.Contains(err.Error(), "clone") {
		t.Skipf("no namespaces can be made here: %v", err)
	}
	if !strings.Contains(err.Error(), "has left capabilities") {
		t.Error(err)
	}
}

func TestTheHelperRefusesTheDaemonsNamespaces(t *testing.T) {
	t.Parallel()
	streams := NewStreams(t)
	p := &Process{command: Command{Stdin: streams.Null, Stdout: streams.Out, Stderr: streams.Out}}
	spec := helper.Spec{Namespaces: true, Given: true, Outside: outside(false), Probe: true, Dir: "/"} // with the network
	err := p.begin(spec, nil)
	if err == nil {
		_, err = p.await(t.Context())
	}
	if err == nil || strings.Contains(err.Error(), "clone") {
		t.Skipf("no namespaces can be made here: %v", err)
	}
	if !strings.Contains(err.Error(), "the net namespace is the machine's") {
		t.Error(err)
	}
}
