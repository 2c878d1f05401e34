package launch_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/internal/rerun"
	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/sandbox/launch"
)

func TestAHiddenFileStaysHiddenInADirectoryThatACallHasClosed(t *testing.T) {
	if rerun.AsUser(t) {
		return
	}
	for _, launcher := range []string{"", "bwrap"} {
		ws := folder(t)
		secret := filepath.Join(ws, "a/b/secret")
		files(t, map[string]string{secret: "content", filepath.Join(ws, "a/b/dir/in"): "content", filepath.Join(ws, "a/other"): "other"})
		p := sandbox.Profile{Mode: sandbox.WorkspaceWrite, Workspace: ws, Hide: []string{secret, filepath.Join(ws, "a/b/dir")}}
		if launcher == "bwrap" {
			p = tierBwrap(t, p)
		} else {
			p.Hide = append(p.Hide, filepath.Join(ws, "a/b/dir/in"))
		}
		chosen, _, err := launch.Choose(t.Context(), p, sandbox.TierA)
		if err != nil {
			t.Skip(err)
		}
		for _, closed := range []string{"a/b", "a", "."} {
			runTier(t, chosen, "chmod 0 "+closed)
			if got, _ := runTier(t, chosen, "chmod 700 . a a/b; cat a/b/secret a/b/dir/in"); strings.Contains(got, "content") {
				t.Errorf("%q: %s was closed, and the call reads the hidden file in it: %q", launcher, closed, got)
			}
			for _, dir := range []string{"", "a", "a/b"} {
				must.Do(t, os.Chmod(filepath.Join(ws, dir), 0o700))
			}
			if got, _ := runTier(t, chosen, "cat a/other"); got != "other" {
				t.Errorf("%q: a call after %s was closed prints %q", launcher, closed, got)
			}
		}
	}
}
