//go:build linux

package conformance

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toold/toold/client"
)

// makeProject is a program that npm fetches and runs: it makes a project as the ones of
// well-known tools do, with files that an editor obeys.
const makeProject = `#!/usr/bin/env node
const fs = require("fs"), [dir] = process.argv.slice(2);
fs.mkdirSync(dir + "/.vscode", { recursive: true });
fs.writeFileSync(dir + "/.vscode/extensions.json", "{}\n");
fs.writeFileSync(dir + "/.gitignore", "node_modules\n");
fs.writeFileSync(dir + "/package.json", JSON.stringify({ name: dir }) + "\n");
`

// makeRepository makes a project that is a git repository.
const makeRepository = makeProject + `
const git = (...args) => require("child_process").execFileSync("git", args, { cwd: dir, stdio: "inherit" });
git("init", "-q");
git("add", "-A");
git("commit", "-qm", "first");
`

// What npm makes projects with is fetched outside, by npm, and then runs in a call, which has
// no network. It makes names that are protected where they appear in a directory that was
// there, and all of it stays.
func TestNPMCreateMakesProjects(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("npm"); err != nil {
		t.Skip("npm is not installed: " + err.Error())
	}
	for _, test := range []struct{ pack, program, script, made string }{
		{"create-page", makeProject, "npm create --offline --yes --cache ./cache page@latest n", "n/.vscode/extensions.json n/.gitignore n/package.json"},
		{
			"create-app", makeRepository,
			"export GIT_{AUTHOR,COMMITTER}_NAME=a GIT_{AUTHOR,COMMITTER}_EMAIL=a@b; npm exec --offline --yes --cache ./cache create-app@latest -- n",
			"n/.git/HEAD n/.git/config n/.vscode/extensions.json n/.gitignore n/package.json",
		},
	} {
		t.Run(test.pack, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			registry := fetchPackage(t, test.pack, test.program, filepath.Join(r.site.workspace, "cache"))
			agent := r.dial(client.Options{})
			arguments := map[string]any{"command": "export npm_config_registry=" + registry + "; " + test.script + " </dev/null", "timeout": 600_000}
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

// fetchPackage has npm put a package of one program into a cache. It comes from a registry
// of the test's own, whose address is returned: nothing leaves the machine.
func fetchPackage(t *testing.T, name, program, cache string) (registry string) {
	t.Helper()
	pack := packed(t, name, program)
	sum := sha512.Sum512(pack)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, ".tgz") {
			w.Write(pack)
			return
		}
		version := map[string]any{"name": name, "version": "1.0.0", "bin": "index.js", "dist": map[string]string{
			"tarball": "http://" + r.Host + "/" + name + ".tgz", "integrity": "sha512-" + base64.StdEncoding.EncodeToString(sum[:]),
		}}
		json.NewEncoder(w).Encode(map[string]any{
			"name": name, "dist-tags": map[string]string{"latest": "1.0.0"}, "versions": map[string]any{"1.0.0": version},
		})
	}))
	defer server.Close()
	home := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "npm", "cache", "add", "--cache", cache, "--fetch-retries", "0", "--registry", server.URL, name+"@latest")
	cmd.Dir = home
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "npm_config_update_notifier=false"}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("npm cannot fetch %s: %v: %s", name, err, out)
	}
	return server.URL
}

// packed is a package as npm publishes it.
func packed(t *testing.T, name, program string) []byte {
	t.Helper()
	var b bytes.Buffer
	zip := gzip.NewWriter(&b)
	w := tar.NewWriter(zip)
	for path, text := range map[string]string{
		"package/package.json": `{"name": "` + name + `", "version": "1.0.0", "bin": "index.js"}`,
		"package/index.js":     program,
	} {
		if err := w.WriteHeader(&tar.Header{Name: path, Mode: 0o755, Size: int64(len(text))}); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, text); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
