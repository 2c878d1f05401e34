package bash_test

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/sandbox/protect"
	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/bash"
)

// What the sandbox really does to commands, told by what they really print.
func TestAReturnTellsWhatTheSandboxDenied(t *testing.T) {
	t.Parallel()
	outside := must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
	hidden := filepath.Join(outside, "hidden")
	must.Do(t, os.Mkdir(hidden, 0o700))
	for _, c := range []struct{ name, script, want string }{
		{"a file outside", "touch /usr/toold-test", "file write /usr/toold-test inferred sandbox.write"},
		{"by the shell", "echo x >/usr/toold-test", "file write /usr/toold-test inferred sandbox.write"},
		{"a folder outside", "mkdir /usr/toold-test", "file write /usr/toold-test inferred sandbox.write"},
		{"told on standard output", "rm /usr/bin/env 2>&1", "file write /usr/bin/env inferred sandbox.write"},
		{"something hidden", "ls hidden/none", "file read WS/hidden/none inferred sandbox.hide"},
		{"something hidden that cannot be there", "cat HIDDEN/none", "file read HIDDEN/none inferred sandbox.hide"},
		{"what is protected", "echo x >.envrc", "protected change WS/.envrc inferred sandbox.protect"},
		{"what appeared", "mkdir .vscode", "protected make WS/.vscode exact sandbox.protect"},
		{"a socket of the machine", "python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect(\"machine\")'", "socket connect to WS/machine exact sandbox.unix_sockets"},
		{"a name", "bash -c 'echo >/dev/tcp/pkg.example/80'", "host connect to pkg.example inferred sandbox.network"},
		{"an address", "bash -c 'echo >/dev/tcp/93.184.216.34/80'", "host connect to other machines inferred sandbox.network"},
		{"a system call", "unshare -U true", "syscall use unshare inferred sandbox.profile"},
		{"what went well", "touch /usr/toold-test; true", ""},
		{"what nobody denied", "cat none; ls /root/none; touch none/none", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			i := newInternet(t)
			must.Do(t, os.WriteFile(filepath.Join(i.workspace, ".envrc"), nil, 0o600))
			must.Do(t, os.Mkdir(filepath.Join(i.workspace, "hidden"), 0o700))
			l := must.Get(net.Listen("unix", filepath.Join(i.workspace, "machine")))(t)
			defer l.Close()
			names := strings.NewReplacer("HIDDEN", hidden, "WS", i.workspace)
			r, out := i.run(t, names.Replace(c.script), nil, func(o *bash.Options, _ *tools.IO) {
				o.Profile.Ports, o.Profile.Hide = nil, []string{hidden, i.workspace + "/hidden"}
				o.Protect = watching(t, i.workspace)
			})
			var got []string
			for _, d := range r.Denials {
				how := map[bool]string{true: "exact", false: "inferred"}[d.Exact]
				got = append(got, strings.Join([]string{d.Kind, d.Op, d.Target, how, d.Setting}, " "))
				if !strings.Contains(r.Text, d.Target+": "+d.Hint) {
					t.Errorf("the text does not tell %+v: %s", d, r.Text)
				}
			}
			if diff := cmp.Diff(names.Replace(c.want), strings.Join(got, "; ")); diff != "" {
				t.Errorf("(-want +got)\n%s\nit printed %q and the return says %q", diff, out, r.Text)
			}
		})
	}
}

func TestAReturnTellsOfFoldersThatNobodyWatches(t *testing.T) {
	t.Parallel()
	i := newInternet(t)
	must.Do(t, os.MkdirAll(filepath.Join(i.workspace, "a/b"), 0o700))
	for watches, want := range map[int]string{0: "", 1: "searched at the end of each call"} {
		r, _ := i.run(t, "true", nil, func(o *bash.Options, _ *tools.IO) {
			g := must.Get(protect.New(protect.Options{Roots: []string{i.workspace}, Names: []string{".envrc"}, Quarantine: t.TempDir(), Watches: watches}))(t)
			t.Cleanup(g.Close)
			o.Protect = g
		})
		if got := r.Sandbox.Unwatched; (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("with %d watches the return says %q", watches, got)
		}
	}
}

// watching is a guard of a workspace.
func watching(t *testing.T, ws string) *protect.Watcher {
	t.Helper()
	g := must.Get(protect.New(protect.Options{Roots: []string{ws}, Names: []string{".envrc", ".vscode"}, Quarantine: t.TempDir()}))(t)
	t.Cleanup(g.Close)
	return g
}
