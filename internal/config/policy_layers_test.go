package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/policy"
)

// administered is a machine whose administrator is whoever runs the test.
func administered(t *testing.T, src string) system {
	t.Helper()
	s := system{filepath.Join(t.TempDir(), "policy.yaml"), uint32(os.Getuid()), foldsCase}
	must.Do(t, os.WriteFile(s.administrator, []byte(src), 0o600))
	// The folder of a test may be writable by a group; that is not the matter.
	must.Do(t, os.Chmod(filepath.Dir(s.administrator), 0o755))
	return s
}

// builtInUser is the layer of a user without a policy of their own.
func builtInUser(t *testing.T) layer {
	t.Helper()
	user := must.Get(readUser(""))(t)
	return user
}

func TestTheAdministratorsFileIsALayer(t *testing.T) {
	t.Parallel()
	s := administered(t, "version: 1\ndefaults: {net: deny}\ncommands:\n  - {id: no-push, decision: deny, run: [\"git push **\"]}\n")
	p := must.Get(s.compile(builtInUser(t), options(t)))(t)
	d := p.Decide([]policy.Effect{{Kind: policy.Exec, Argv: []policy.Word{{Text: "git"}, {Text: "push"}}}})
	if d.Action != policy.Deny || d.Source != s.administrator+":4" {
		t.Errorf("git push: %+v", d)
	}
	if d := p.Decide([]policy.Effect{{Kind: policy.Net, Host: "a.b"}}); d.Action != policy.Deny || d.Source != s.administrator+":2" {
		t.Errorf("a host: %+v", d)
	}
	if len(p.Warnings()) != 0 {
		t.Errorf("warnings: %q", p.Warnings())
	}
}

func TestAnAdministratorsFileThatOthersCanChangeIsRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		spoil func(*testing.T, *system)
		want  string
	}{
		{"another owner", func(_ *testing.T, s *system) { s.root++ }, "must belong to"},
		{"group writes the file", func(t *testing.T, s *system) { chmod(t, s.administrator, 0o660) }, "can be written by others"},
		{"others write the folder", func(t *testing.T, s *system) { chmod(t, filepath.Dir(s.administrator), 0o777) }, "can be written by others"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := administered(t, "version: 1\n")
			c.spoil(t, &s)
			if _, err := s.compile(builtInUser(t), options(t)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

func chmod(t *testing.T, path string, mode os.FileMode) {
	t.Helper()
	must.Do(t, os.Chmod(path, mode))
}

func TestAHardLinkIsNoOtherSpelling(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must.Do(t, os.WriteFile(filepath.Join(dir, "Name"), nil, 0o600))
	before := foldsCase(dir)
	if before {
		t.Skip("this file system takes names that differ in case for one")
	}
	if err := os.Link(filepath.Join(dir, "Name"), filepath.Join(dir, "nAME")); err != nil {
		t.Skipf("no hard links here: %v", err)
	}
	if foldsCase(dir) {
		t.Error("a hard link was taken for another spelling of its twin")
	}
}
