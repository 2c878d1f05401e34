package config

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/policy"
)

// foldingDisk holds paths of which those that differ in case are one.
func foldingDisk(paths ...string) disk {
	return disk{
		names: func(dir string) (names []string) {
			for _, p := range paths {
				if filepath.Dir(p) == filepath.Clean(dir) {
					names = append(names, filepath.Base(p))
				}
			}
			return names
		},
		same: func(a, b string) bool {
			for _, p := range paths {
				if strings.EqualFold(p, a) && strings.EqualFold(p, b) {
					return true
				}
			}
			return false
		},
	}
}

func TestAFoldingDiskIsFoundByAskingForAnotherSpelling(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		disk disk
		want bool
	}{
		{"a file", foldingDisk("/w", "/w/README"), true},
		{"empty", foldingDisk("/w"), true},
		{"only digits", foldingDisk("/w", "/w/1"), true}, // by the folder's own name
		{"absent", foldingDisk(), false},
		{"exact", disk{foldingDisk("/w", "/w/README").names, func(a, b string) bool { return a == b }}, false},
		{"two files", disk{foldingDisk("/w", "/w/README", "/w/readme").names, func(string, string) bool { return true }}, false},
	} {
		if got := c.disk.folds("/w"); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

func TestPathCaseAutoGoesByTheWorkspace(t *testing.T) {
	t.Parallel()
	user := must.Get(parsePolicy("p.yaml", []byte("version: 1\npaths:\n  - {id: env, decision: deny, match: [\"${workspace}/.env\"]}\n"), policy.Ask, caseAuto))(t)
	s := administered(t, "version: 1\n")
	for _, folds := range []bool{true, false} {
		s.folds = func(string) bool { return folds }
		o := options(t)
		p := must.Get(s.compile(user, o))(t)
		path := filepath.Join(o.Workspace, ".ENV")
		d := p.Decide([]policy.Effect{{Kind: policy.Read, Path: path, Canonical: path}})
		if denied := d.Rule == "env"; denied != folds {
			t.Errorf("folds %v: %+v", folds, d)
		}
	}
}

func TestARealFoldingFileSystemIsFound(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "casefold=utf8-12.1.0", "none", dir).CombinedOutput(); err != nil {
		t.Skipf("cannot mount a file system that folds case: %v %s", err, out)
	}
	defer exec.Command("umount", dir).Run()
	ws := filepath.Join(dir, "Ws")
	must.Do(t, os.Mkdir(ws, 0o700))
	if out, err := exec.Command("chattr", "+F", ws).CombinedOutput(); err != nil {
		t.Skipf("cannot make a folder fold case: %v %s", err, out)
	}
	must.Do(t, os.WriteFile(filepath.Join(ws, "File"), nil, 0o600))
	if !foldsCase(ws) {
		t.Error("a folder that folds case is not found")
	}
}
