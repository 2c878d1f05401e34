// Package examples holds clients to copy. Its test runs each of them against a
// real daemon.
package examples

import (
	"bytes"
	"context"
	"crypto/sha1"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// skip says why an example could not be tried; with TOOLD_REQUIRE_EXAMPLES it
// must be possible to try all of them.
func skip(t *testing.T, why string) {
	t.Helper()
	if os.Getenv("TOOLD_REQUIRE_EXAMPLES") != "" {
		t.Fatal(why)
	}
	t.Skip(why)
}

// ready is the line with which `toold serve --json` tells that it serves.
type ready struct {
	Addresses  map[string]string `json:"addresses"`
	TokenFiles map[string]string `json:"token_files"`
}

// startDaemon builds toold and runs it until the test has ended.
func startDaemon(t *testing.T) ready {
	t.Helper()
	dir := t.TempDir()
	binary := filepath.Join(dir, "toold")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "../cmd/toold").CombinedOutput(); err != nil {
		t.Fatalf("cannot build toold: %v\n%s", err, out)
	}
	workspace := filepath.Join(dir, "workspace")
	if err := os.Mkdir(workspace, 0o755); err != nil {
		t.Fatal(err)
	}
	daemon := exec.Command(binary, "serve", "--json", "--listen", "127.0.0.1:0",
		"--workspace", workspace, "--state-dir", filepath.Join(dir, "state"))
	daemon.Env = append(os.Environ(), "XDG_CONFIG_HOME="+filepath.Join(dir, "config")) // not the configuration of whoever runs the test
	var log bytes.Buffer
	daemon.Stderr = &log
	stdout, err := daemon.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := daemon.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		daemon.Process.Signal(syscall.SIGTERM)
		if err := daemon.Wait(); err != nil {
			t.Errorf("toold ended with %v\n%s", err, &log)
		}
	})
	var r ready
	if err := json.NewDecoder(stdout).Decode(&r); err != nil {
		t.Fatalf("toold did not get ready: %v", err)
	}
	return r
}

// run runs an example and returns what it printed and its exit code.
func run(t *testing.T, r ready, argv ...string) (stdout, stderr string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute) // a guard against a client that hangs
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), "TOOLD_URL="+r.Addresses["ws"], "TOOLD_TOKEN_FILE="+r.TokenFiles["agent"])
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("cannot run %v: %v", argv, err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// check makes one call that prints on both streams and fails, and one whose
// return is all there is to print.
func check(t *testing.T, r ready, argv ...string) {
	t.Helper()
	stdout, stderr, code := run(t, r, append(argv, "echo out; echo err >&2; exit 3")...)
	if strings.Contains(stderr, "sandbox_unavailable") || strings.Contains(stderr, "cannot be confined") {
		skip(t, "no sandbox on this machine: "+stderr)
	}
	if stdout != "out\n" || !strings.HasPrefix(stderr, "err\n") || !strings.Contains(stderr, "exit code 3") || code != 3 {
		t.Errorf("got exit code %d, %q and %q, want 3, out and err", code, stdout, stderr)
	}
	if stdout, stderr, code := run(t, r, append(argv, " ")...); code != 1 || stdout != "" || !strings.Contains(stderr, "command") {
		t.Errorf("an empty command: got exit code %d, %q and %q, want 1 and why", code, stdout, stderr)
	}
}

// nodeModules returns the folder of installed modules: what `npm install ws tsx`
// left in TOOLD_NODE_MODULES or beside the examples.
func nodeModules(t *testing.T, module string) string {
	t.Helper()
	dir := os.Getenv("TOOLD_NODE_MODULES")
	if dir == "" {
		dir = "node_modules"
	}
	if _, err := os.Stat(filepath.Join(dir, module)); err != nil {
		skip(t, "the module "+module+" is not installed: "+err.Error())
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// beside copies an example to a folder in which its modules are found, since
// node looks for them beside the importing file.
func beside(t *testing.T, modules, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	copied := filepath.Join(dir, name)
	if err := errors.Join(
		os.WriteFile(copied, text, 0o644),
		os.WriteFile(filepath.Join(dir, "package.json"), []byte(`{"type":"module"}`), 0o644),
		os.Symlink(modules, filepath.Join(dir, "node_modules")),
	); err != nil {
		t.Fatal(err)
	}
	return copied
}

func lookPath(t *testing.T, program string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		skip(t, err.Error())
	}
	return path
}

// pythonWithWebsockets returns an interpreter that has the library.
func pythonWithWebsockets(t *testing.T) string {
	t.Helper()
	for _, python := range []string{os.Getenv("TOOLD_PYTHON"), "python3", "/usr/bin/python3"} {
		if python != "" && exec.CommandContext(t.Context(), python, "-c", "import websockets").Run() == nil {
			return python
		}
	}
	skip(t, "no python3 with the library websockets")
	return ""
}

func TestEveryExampleRunsACommand(t *testing.T) {
	t.Parallel()
	r := startDaemon(t)
	t.Run("client.mjs", func(t *testing.T) {
		node := lookPath(t, "node")
		check(t, r, node, beside(t, nodeModules(t, "ws"), "client.mjs"))
	})
	t.Run("client.ts", func(t *testing.T) {
		lookPath(t, "node")
		modules := nodeModules(t, "tsx")
		check(t, r, filepath.Join(modules, ".bin", "tsx"), beside(t, modules, "client.ts"))
	})
	t.Run("client.py", func(t *testing.T) {
		check(t, r, pythonWithWebsockets(t), "client.py")
	})
}

// lostConnections are daemons that go away before the return, by the way they do so.
func lostConnections(t *testing.T) map[string]ready {
	t.Helper()
	all := map[string]ready{}
	for how, end := range map[string][]byte{"closed": {0x88, 2, 3, 0xe9}, "cut": nil} { // a close frame with 1001, or nothing
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			conn, buffered, err := w.(http.Hijacker).Hijack()
			if err != nil {
				return
			}
			defer conn.Close()
			accept := sha1.Sum([]byte(r.Header.Get("Sec-WebSocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11")) // RFC 6455, 1.3
			fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: %s\r\n\r\n",
				base64.StdEncoding.EncodeToString(accept[:]))
			buffered.ReadByte() // of the call
			conn.Write(end)
		}))
		t.Cleanup(s.Close)
		all[how] = ready{Addresses: map[string]string{"ws": "ws" + strings.TrimPrefix(s.URL, "http")}}
	}
	gone := httptest.NewServer(nil)
	gone.Close()
	all["refused"] = ready{Addresses: map[string]string{"ws": "ws" + strings.TrimPrefix(gone.URL, "http")}}
	return all
}

// checkLost runs an example whose daemon goes away: it fails, and says so in a line.
func checkLost(t *testing.T, argv ...string) {
	t.Helper()
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for how, r := range lostConnections(t) {
		r.TokenFiles = map[string]string{"agent": token}
		stdout, stderr, code := run(t, r, append(argv, "true")...)
		if code != 1 || stdout != "" || strings.Count(stderr, "\n") != 1 || !strings.HasPrefix(stderr, "the connection ") {
			t.Errorf("connection %s: got exit code %d, %q and %q, want 1 and a line that says why", how, code, stdout, stderr)
		}
	}
}

func TestExamplesFailWhenTheConnectionIsLost(t *testing.T) {
	t.Parallel()
	t.Run("client.mjs", func(t *testing.T) {
		checkLost(t, lookPath(t, "node"), beside(t, nodeModules(t, "ws"), "client.mjs"))
	})
	t.Run("client.ts", func(t *testing.T) {
		lookPath(t, "node")
		modules := nodeModules(t, "tsx")
		checkLost(t, filepath.Join(modules, ".bin", "tsx"), beside(t, modules, "client.ts"))
	})
	t.Run("client.py", func(t *testing.T) { checkLost(t, pythonWithWebsockets(t), "client.py") })
}

func TestExamplesFitOnAScreen(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"client.mjs", "client.ts", "client.py"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if lines := bytes.Count(text, []byte("\n")); lines > 30 {
			t.Errorf("%s has %d lines, want at most 30", name, lines)
		}
	}
}
