//go:build unix

// Package clients tests the packages for Node and Python against a real daemon.
package clients

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/toold/toold/internal/race"
)

func TestMain(m *testing.M) {
	if race.Enabled {
		fmt.Println("skipped: the daemon that the clients call is built without the race detector")
		return
	}
	m.Run()
}

// skip says why a client could not be tried; with TOOLD_REQUIRE_EXAMPLES all must be.
func skip(t *testing.T, why string) {
	t.Helper()
	if os.Getenv("TOOLD_REQUIRE_EXAMPLES") != "" {
		t.Fatal(why)
	}
	t.Skip(why)
}

// daemon is one that can be started again at its address, with its journal.
type daemon struct {
	t           *testing.T
	dir, binary string
	address     string
	cmd         *exec.Cmd
}

func newDaemon(t *testing.T) *daemon {
	t.Helper()
	d := &daemon{t: t, dir: t.TempDir()}
	d.binary = filepath.Join(d.dir, "toold")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", d.binary, "../cmd/toold").CombinedOutput(); err != nil {
		t.Fatalf("cannot build toold: %v\n%s", err, out)
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err = errors.Join(err, os.Mkdir(filepath.Join(d.dir, "workspace"), 0o755)); err != nil {
		t.Fatal(err)
	}
	d.address = free.Addr().String()
	free.Close()
	return d
}

// start returns when the daemon serves.
func (d *daemon) start() {
	d.t.Helper()
	d.cmd = exec.Command(d.binary, "serve", "--json", "--listen", d.address, "--workspace", filepath.Join(d.dir, "workspace"), "--state-dir", filepath.Join(d.dir, "state"))
	d.cmd.Env = append(os.Environ(), "XDG_CONFIG_HOME="+filepath.Join(d.dir, "config"))
	var log bytes.Buffer
	d.cmd.Stderr = &log
	stdout, err := d.cmd.StdoutPipe()
	if err = errors.Join(err, d.cmd.Start()); err != nil {
		d.t.Fatal(err)
	}
	var ready any
	if err := json.NewDecoder(stdout).Decode(&ready); err != nil {
		d.end(syscall.SIGKILL)
		if strings.Contains(log.String(), "sandbox") {
			skip(d.t, log.String())
		}
		d.t.Fatalf("the daemon did not start: %v\n%s", err, &log)
	}
}

func (d *daemon) end(signal os.Signal) {
	_ = d.cmd.Process.Signal(signal) // it may be gone
	_ = d.cmd.Wait()
}

// client is an example, which runs the command in its last argument by an installed package.
type client struct {
	argv []string
	env  []string
}

// must runs a program that sets something up.
func must(t *testing.T, dir string, argv ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%q: %v\n%s", argv, err, out)
	}
}

// example copies an example to dir.
func example(t *testing.T, dir, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "examples", name))
	path := filepath.Join(dir, name)
	if err = errors.Join(err, os.WriteFile(path, text, 0o644)); err != nil {
		t.Fatal(err)
	}
	return path
}

// nodePackage installs the package for Node from what npm packs, and ws beside it, without a
// network.
func nodePackage(t *testing.T) (dir, modules string) {
	t.Helper()
	modules = os.Getenv("TOOLD_NODE_MODULES")
	_, err := exec.LookPath("npm")
	if _, err2 := os.Stat(filepath.Join(modules, "ws")); modules == "" || errors.Join(err, err2) != nil {
		skip(t, "npm and the module ws are needed (TOOLD_NODE_MODULES)")
	}
	dir = t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "package.json"), []byte(`{"private": true, "type": "module"}`), 0o644); err != nil {
		t.Fatal(err)
	}
	ours, err := filepath.Abs("npm")
	if err != nil {
		t.Fatal(err)
	}
	must(t, dir, "npm", "pack", "--silent", "--offline", ours, filepath.Join(modules, "ws"))
	packed, err := filepath.Glob(filepath.Join(dir, "*.tgz"))
	if err != nil || len(packed) != 2 {
		t.Fatalf("npm packed %q, %v", packed, err)
	}
	must(t, dir, append([]string{"npm", "install", "--silent", "--offline", "--no-audit", "--no-fund", "--ignore-scripts"}, packed...)...)
	return dir, modules
}

func node(t *testing.T) client {
	t.Helper()
	dir, _ := nodePackage(t)
	return client{argv: []string{"node", example(t, dir, "client.mjs")}}
}

func typescript(t *testing.T) client {
	t.Helper()
	dir, modules := nodePackage(t)
	tsx := filepath.Join(modules, ".bin", "tsx")
	if _, err := os.Stat(tsx); err != nil {
		skip(t, "the module tsx is needed (TOOLD_NODE_MODULES)")
	}
	client := client{argv: []string{tsx, example(t, dir, "client.ts")}}
	if tsc := filepath.Join(modules, ".bin", "tsc"); isFile(tsc) {
		compiles(t, dir, tsc)
	} else {
		skip(t, "the module typescript is needed (TOOLD_NODE_MODULES)")
	}
	return client
}

func isFile(path string) bool { _, err := os.Stat(path); return err == nil }

// python installs the package from a wheel where pip can build one without a network.
func python(t *testing.T) client {
	t.Helper()
	dir := t.TempDir()
	source, site := filepath.Join(dir, "source"), filepath.Join(dir, "site")
	if err := os.CopyFS(source, os.DirFS("python")); err != nil {
		t.Fatal(err)
	}
	program := interpreter(t, "websockets, setuptools, wheel, pip")
	if program == "" {
		if program, site = interpreter(t, "websockets"), source; program == "" {
			skip(t, "no python3 with the library websockets")
		}
		t.Log("no pip, setuptools and wheel: the package is used where it is")
	} else {
		must(t, dir, program, "-m", "pip", "wheel", "--no-deps", "--no-index", "--no-build-isolation", "-w", dir, source)
		wheels, err := filepath.Glob(filepath.Join(dir, "*.whl"))
		if err != nil || len(wheels) != 1 {
			t.Fatalf("pip built %q, %v", wheels, err)
		}
		must(t, dir, program, "-m", "pip", "install", "--no-deps", "--no-index", "--target", site, wheels[0])
	}
	return client{argv: []string{program, example(t, dir, "client.py")}, env: []string{"PYTHONPATH=" + site, "PYTHONDONTWRITEBYTECODE=1"}}
}

// interpreter is a Python that has modules; "" when there is none.
func interpreter(t *testing.T, modules string) string {
	for _, program := range []string{os.Getenv("TOOLD_PYTHON"), "python3", "/usr/bin/python3"} {
		if program != "" && exec.CommandContext(t.Context(), program, "-c", "import "+modules).Run() == nil {
			return program
		}
	}
	return ""
}

// begin starts a client; the function it returns waits for its end.
func (c client) begin(d *daemon, patience, command string) (end func() (stdout, stderr string, code int)) {
	d.t.Helper()
	cmd := exec.Command(c.argv[0], append(c.argv[1:len(c.argv):len(c.argv)], command)...)
	cmd.Env = append(append(os.Environ(), c.env...), "TOOLD_URL=ws://"+d.address+"/v1/ws", "TOOLD_TOKEN_FILE="+filepath.Join(d.dir, "state", "tokens", "agent"), "TOOLD_PATIENCE="+patience)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	return func() (string, string, int) {
		_ = cmd.Wait()
		return out.String(), errs.String(), cmd.ProcessState.ExitCode()
	}
}

// TestClients installs each client once.
func TestClients(t *testing.T) {
	t.Parallel()
	for name, install := range map[string]func(*testing.T) client{"npm": node, "typescript": typescript, "python": python} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := install(t)
			for name, try := range map[string]func(*testing.T, client){
				"a command": runsACommand, "the daemon is restarted": runsOnce, "no daemon": failsInOneLine,
			} {
				t.Run(name, func(t *testing.T) { try(t, c) })
			}
		})
	}
}

func runsACommand(t *testing.T, c client) {
	d := newDaemon(t)
	d.start()
	defer d.end(syscall.SIGTERM)
	stdout, stderr, code := c.begin(d, "30", "echo out; echo err >&2; exit 3")()
	if stdout != "out\n" || stderr != "err\n[error, exit code 3]\n" || code != 3 {
		t.Errorf("got exit code %d, %q and %q", code, stdout, stderr)
	}
	if stdout, stderr, code := c.begin(d, "30", " ")(); code != 1 || stdout != "" || !strings.Contains(stderr, "command") {
		t.Errorf("an empty command: got exit code %d, %q and %q", code, stdout, stderr)
	}
}

// A daemon that is killed in the middle of a call, and starts again, has one return for it.
func runsOnce(t *testing.T, c client) {
	d := newDaemon(t)
	d.start()
	ran := filepath.Join(d.dir, "workspace", "ran")
	fifo := filepath.Join(d.dir, "workspace", "begun")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	end := c.begin(d, "60", "echo one; echo x >>ran; echo >begun; sleep 600; echo two")
	if _, err := os.ReadFile(fifo); err != nil { // waits until it runs
		t.Fatal(err)
	}
	d.end(syscall.SIGKILL)
	d.start()
	defer d.end(syscall.SIGTERM)
	stdout, stderr, code := end()
	if code != 1 || strings.Count(stdout, "one") > 1 || strings.Contains(stdout, "two") || !strings.Contains(stderr, "before it recorded how this call ended") {
		t.Errorf("got exit code %d, %q and %q", code, stdout, stderr)
	}
	if text, err := os.ReadFile(ran); err != nil || string(text) != "x\n" {
		t.Errorf("the command ran as %q, %v", text, err)
	}
}

func failsInOneLine(t *testing.T, c client) {
	d := newDaemon(t)
	d.start() // so that there are tokens
	d.end(syscall.SIGTERM)
	stdout, stderr, code := c.begin(d, "0.3", "true")()
	if code != 1 || stdout != "" || strings.Count(stderr, "\n") != 1 || !strings.HasPrefix(stderr, "toold: no return came for call-") {
		t.Errorf("got exit code %d, %q and %q", code, stdout, stderr)
	}
}
