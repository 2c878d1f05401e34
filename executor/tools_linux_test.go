package executor_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toold/toold/executor"
	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/sandbox/caches"
	"github.com/toold/toold/sandbox/launch"
)

// What developers run in their projects, each in a fresh folder, without network,
// in a home that cannot be written.
func TestBuildsWork(t *testing.T) {
	t.Parallel()
	for _, tool := range []struct{ name, needs, script, want string }{
		{"go build and go test", "go", `export GOFLAGS=-mod=mod GOPROXY=off GOTOOLCHAIN=local GOWORK=off
printf 'module hello\n\ngo 1.21\n' >go.mod
printf 'package main\n\nfunc main() { println(answer()) }\n\nfunc answer() int { return 42 }\n' >main.go
printf 'package main\n\nimport "testing"\n\nfunc TestAnswer(t *testing.T) {\n\tif answer() != 42 {\n\t\tt.Fatal()\n\t}\n}\n' >main_test.go
go build -o hello . && ./hello 2>&1 && go test . >/dev/null && echo tested`, "42\ntested\n"},
		{"npm ci", "npm", `mkdir dep app
echo '{"name":"dep","version":"1.0.0","main":"i.js"}' >dep/package.json
echo 'module.exports = "from dep"' >dep/i.js
(cd dep && npm pack --silent --pack-destination ../app >/dev/null)
cd app
echo '{"name":"app","version":"1.0.0","dependencies":{"dep":"file:dep-1.0.0.tgz"}}' >package.json
npm install --silent --no-audit --no-fund && rm -r node_modules && npm ci --silent --no-audit --no-fund && node -p 'require("dep")'`, "from dep\n"},
		{"pip install from an index that the call itself serves", "python3", `set -e
python3 - <<'P'
import os, zipfile
os.makedirs("simple/greet")
info = "greet-1.0.dist-info/"
with zipfile.ZipFile("simple/greet/greet-1.0-py3-none-any.whl", "w") as z:
    z.writestr("greet.py", "print('greetings')\n")
    z.writestr(info + "METADATA", "Metadata-Version: 2.1\nName: greet\nVersion: 1.0\n")
    z.writestr(info + "WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    z.writestr(info + "RECORD", "greet.py,,\n" + info + "METADATA,,\n" + info + "WHEEL,,\n" + info + "RECORD,,\n")
P
mkfifo port
python3 -c '
import http.server
s = http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
open("port", "w").write(str(s.server_port))
s.serve_forever()' 2>/dev/null &
port=$(cat port)
python3 -m venv v
v/bin/pip install -q --disable-pip-version-check --index-url "http://127.0.0.1:$port/simple" greet
v/bin/python -c 'import greet'
kill %1`, "greetings\n"},
		{"cargo build", "cargo", `cargo new --quiet --vcs none hello 2>/dev/null && cd hello && cargo build --quiet --offline && ./target/debug/hello`, "Hello, world!\n"},
		{"make", "make", `printf 'out: in\n\tcp in out\n' >Makefile; echo made >in; make -s && cat out`, "made\n"},
		{"git worktree and submodule", "git", `set -e
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=b
export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=protocol.file.allow GIT_CONFIG_VALUE_0=always
git init -q lib && git -C lib commit -q --allow-empty -m lib
git init -q app && cd app && git submodule -q add ../lib lib && git commit -qm 'has lib'
git worktree add -q ../tree && cd ../tree && git submodule -q update --init && git -C lib log --format=%s && git status --short
git commit -q --allow-empty -m 'in the tree' && git -C ../app log --format=%s -1 tree`, "lib\nin the tree\n"},
		{"a server and its client", "python3", `mkfifo port; echo served >page
python3 -c '
import http.server
s = http.server.ThreadingHTTPServer(("localhost", 0), http.server.SimpleHTTPRequestHandler)
open("port", "w").write(str(s.server_port))
s.serve_forever()' 2>/dev/null &
python3 -c 'import sys, urllib.request; sys.stdout.write(urllib.request.urlopen("http://localhost:%s/page" % open("port").read()).read().decode())'
kill %1`, "served\n"},
		{"gradle", "gradle", `mkdir -p src/main/java
printf "apply plugin: 'java'\napply plugin: 'application'\nmainClassName = 'Hello'\n" >build.gradle
printf 'public class Hello { public static void main(String[] a) { System.out.println("built"); } }\n' >src/main/java/Hello.java
gradle --offline --no-daemon --quiet run`, "built\n"},
		{"git", "git", `git init -q . && echo x >f && git add -A && git -c user.name=a -c user.email=b commit -qm one && git status --short && git log --format=%s`, "one\n"},
	} {
		t.Run(tool.name, func(t *testing.T) {
			t.Parallel()
			requireProgram(t, tool.needs)
			c := in(t, executor.Off, tool.script)
			requireWorking(t, tool.needs, c.Env)
			c.Timeout = 5 * time.Minute
			c.Sandbox.Caches = usualCaches(t)
			c.Env = executor.BaseEnv(executor.EnvOptions{From: c.Env, Default: c.Sandbox.Caches.Env()})
			got, _ := run(t, c)
			if diff := cmp.Diff(tool.want, got.Out); diff != "" || got.Code != 0 {
				t.Errorf("exit %d: %s\n%s", got.Code, diff, got.Err)
			}
		})
	}
}

// requireWorking skips a tool that does not print its version outside of the sandbox.
func requireWorking(t testing.TB, tool string, env []string) {
	t.Helper()
	argv := map[string][]string{"go": {"version"}, "python3": {"-c", "import ensurepip, venv"}}[tool]
	if argv == nil {
		argv = []string{"--version"}
	}
	c := exec.CommandContext(t.Context(), tool, argv...)
	c.Env, c.Dir = env, t.TempDir()
	if out, err := c.CombinedOutput(); err != nil {
		t.Skipf("%s does not work here: %v: %s", tool, err, out)
	}
}

func usualCaches(t testing.TB) *caches.Set {
	t.Helper()
	home, err := filepath.EvalSymlinks(os.Getenv("HOME"))
	if err != nil {
		t.Skipf("no home: %v", err)
	}
	c := must.Get(caches.Open(t.Context(), launch.Overlays, filepath.Join(t.TempDir(), "store"), []caches.Cache{
		{Path: filepath.Join(home, ".cache"), Env: "XDG_CACHE_HOME"},
		{Path: filepath.Join(home, "go/pkg/mod"), Env: "GOMODCACHE"},
		{Path: filepath.Join(home, ".npm"), Env: "npm_config_cache"},
		{Path: filepath.Join(home, ".cargo/registry"), Env: "CARGO_HOME"},
		{Path: filepath.Join(home, ".gradle"), Env: "GRADLE_USER_HOME"},
	}))(t)
	t.Cleanup(c.Close)
	return c
}
