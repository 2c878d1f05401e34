package protect_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// creator replaces a package such as create-vite, which npm would load from its
// registry: it makes a project with what editors obey in it.
const creator = `mkdir -p creator; cd creator
echo '{"name": "create-thing", "version": "1.0.0", "bin": {"create-thing": "./make.js"}}' >package.json
cat >make.js <<'X'
#!/usr/bin/env node
const fs = require("fs"), dir = process.argv[2]
fs.mkdirSync(dir + "/.vscode", {recursive: true})
fs.writeFileSync(dir + "/.vscode/extensions.json", "{}")
fs.writeFileSync(dir + "/.npmrc", "fund=false\n")
fs.writeFileSync(dir + "/package.json", "{}")
require("child_process").execFileSync("git", ["init", "-q", dir])
X
chmod +x make.js`

// rustup has cargo found where the user has it.
var rustup = `export RUSTUP_HOME="` + os.Getenv("HOME") + `/.rustup"; `

func TestToolsThatMakeProjectsWork(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ tool, setup, script, made string }{
		"cargo new":  {"cargo", "", rustup + "cargo new -q n", "n/Cargo.toml"},
		"npm create": {"npm", creator, "npm exec --offline --yes --package=./creator create-thing n </dev/null", "n/.vscode/extensions.json"},
		"git clone":  {"git", "git init -q s; echo >s/.envrc; git -C s add .; git -C s commit -qm 1", "git clone -q s n; git -C n pull -q", "n/.envrc"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if out, err := exec.CommandContext(t.Context(), test.tool, "--version").CombinedOutput(); err != nil {
				t.Skipf("%s cannot be run: %v %s", test.tool, err, out)
			}
			p := newProject(t, test.setup)
			c := p.Begin(nil)
			p.sh(test.script)
			if found := p.taken(c.End()); ended(c) {
				t.Error("the call was ended")
			} else if diff := cmp.Diff([]string(nil), found); diff != "" {
				t.Error(diff)
			}
			if _, err := os.Stat(filepath.Join(p.dir, test.made)); err != nil {
				t.Error(err)
			}
			if got := p.call("true"); got != nil {
				t.Errorf("the next call reports %v", got)
			}
		})
	}
}
