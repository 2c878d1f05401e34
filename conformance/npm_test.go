//go:build linux

package conformance

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toold/toold/client"
)

// What npm makes projects with is fetched outside, by npm, and then runs in a call, which has
// no network. It makes names that are protected where they appear in a directory that was
// there, and all of it stays.
func TestNPMCreateMakesProjects(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("-short: packages are not fetched")
	}
	for _, test := range []struct{ pack, script, made string }{
		{"create-vite", "npm create --offline --yes --cache ./cache vite@latest n -- --template vue --no-interactive", "n/.vscode/extensions.json n/.gitignore n/package.json n/index.html"},
		{
			"create-next-app",
			"export GIT_{AUTHOR,COMMITTER}_NAME=a GIT_{AUTHOR,COMMITTER}_EMAIL=a@b; npm exec --offline --yes --cache ./cache create-next-app@latest -- n --yes --js --skip-install",
			"n/.git/HEAD n/.git/config n/.gitignore n/package.json",
		},
	} {
		t.Run(test.pack, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			fetchPackage(t, test.pack, filepath.Join(r.site.workspace, "cache"))
			agent := r.dial(client.Options{})
			arguments := map[string]any{"command": test.script + " </dev/null", "timeout": 600_000}
			ret, err := agent.Call(t.Context(), client.Call{Tool: "bash", Arguments: arguments}, client.Events{})
			if err != nil || ret.Status != "success" || ret.ExitCode == nil || *ret.ExitCode != 0 {
				t.Fatalf("%v %s", err, ret.Result)
			}
			for _, d := range ret.Denials {
				if d.Kind == "protected" {
					t.Errorf("the return tells of %+v", d)
				}
			}
			r.bash(agent, "true", "off", client.Events{})
			for path := range strings.FieldsSeq(test.made) {
				if _, err := os.Stat(filepath.Join(r.site.workspace, path)); err != nil {
					t.Error(err)
				}
			}
			if left, err := os.ReadDir(filepath.Join(r.site.state, "quarantine")); err == nil && len(left) > 0 {
				t.Errorf("%v was taken away", left)
			}
		})
	}
}

// fetchPackage has npm put a package without dependencies into a cache.
func fetchPackage(t *testing.T, pack, cache string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "npm", "cache", "add", "--cache", cache, "--fetch-retries", "0", pack+"@latest")
	cmd.Dir = t.TempDir()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Skipf("npm cannot fetch %s: %v: %.300s", pack, err, out)
	}
}
