package bash

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/sandbox"
)

// A call can put pipes and links to devices where its removals are looked at: nothing waits
// for them, and they bring nothing back.
func TestPipesAndDevicesKeepNothing(t *testing.T) {
	t.Parallel()
	ws := t.TempDir()
	for _, dir := range []string{".git/objects/pack", "pipe/build", "zero/build", "held"} {
		must.Do(t, os.MkdirAll(filepath.Join(ws, dir), 0o700))
	}
	for _, file := range []string{"pipe/build/a", "zero/build/a", "held/a"} {
		must.Do(t, os.WriteFile(filepath.Join(ws, file), []byte("only here"), 0o600))
	}
	for _, pipe := range []string{".git/objects/pack/x.idx", ".git/config", "pipe/.gitignore"} {
		must.Do(t, unix.Mkfifo(filepath.Join(ws, pipe), 0o600))
	}
	must.Do(t, os.Symlink("/dev/zero", filepath.Join(ws, "zero/.gitignore")))
	tool := New(Options{Workspace: ws, Profile: sandbox.Profile{Mode: sandbox.WorkspaceWrite, Workspace: ws}})
	for _, script := range []string{"rm -rf held", "rm -rf pipe/build", "rm -rf zero/build"} {
		inv := must.Get(tool.Build(json.RawMessage(`{"command":"` + script + `"}`)))(t)
		for _, e := range inv.Effects() {
			if e.Kind == policy.Exec && e.Kept {
				t.Errorf("%s: a removal counts as one that can be had again", script)
			}
		}
	}
}
