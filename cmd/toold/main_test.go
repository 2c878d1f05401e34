package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/internal/race"
	"github.com/toold/toold/internal/service"
	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/sandbox/launch"
)

func TestMain(m *testing.M) {
	if race.Enabled && os.Getenv("TOOLD_RACE") != "all" {
		fmt.Println("skipped: every command would start a program with the race detector; TOOLD_RACE=all plays them")
		return
	}
	testscript.Main(waiting{m}, map[string]func(){
		"toold": func() { main() },
	})
}

// waiting runs more tests side by side than there are processors, unless -parallel
// says otherwise: scripts wait most of the time.
type waiting struct{ *testing.M }

func (w waiting) Run() int {
	heedSignals()
	flag.Parse()
	told := false
	flag.Visit(func(f *flag.Flag) { told = told || f.Name == "test.parallel" })
	if !told {
		if err := flag.Set("test.parallel", strconv.Itoa(3*runtime.GOMAXPROCS(0))); err != nil {
			panic(err) // there is no such flag
		}
	}
	return w.M.Run()
}

// heedSignals undoes for the commands of the tests what nohup and a shell's & have set:
// a signal that this process ignores, its children would ignore as well.
func heedSignals() {
	for _, s := range []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT} {
		if signal.Ignored(s) {
			signal.Notify(make(chan os.Signal, 1), s) // nothing reads it: it is ignored still
		}
	}
}

// scriptEnv gives a script a home of its own and a port that nobody else gets.
func scriptEnv(e *testscript.Env) error {
	port, release, err := reservePort()
	if err != nil {
		return err
	}
	e.Defer(func() { _ = release() })
	home := filepath.Join(e.WorkDir, "home")
	workspace := filepath.Join(e.WorkDir, "ws")
	for _, dir := range []string{home, workspace} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	e.Cd = workspace
	e.Setenv("HOME", home)
	e.Setenv("TOOLD_LISTEN", fmt.Sprintf("127.0.0.1:%d", port))
	e.Defer(func() { _, _, _ = service.Stop(context.Background(), filepath.Join(home, ".local/state/toold")) }) // of toold up
	e.Setenv("NO_COLOR", "1")
	e.Setenv("GORACE", "atexit_sleep_ms=0") // with -race, each command would sleep a second at its end
	for _, name := range stockAgents() {
		name = "TOOLD_" + strings.ToUpper(name)
		e.Setenv(name, os.Getenv(name))
	}
	e.Setenv("MARK", fmt.Sprintf("%06d", rand.IntN(1e6)))
	return nil
}

// stockAgents are those that scripts connect.
func stockAgents() []string {
	return []string{"codex", "claude", "gemini", "goose", "letta", "opencode"}
}

// needsSandbox skips a test, visibly, where calls cannot be confined.
func needsSandbox(tb testing.TB) {
	tb.Helper()
	if _, err := launch.Try(context.Background(), sandbox.Profile{Mode: sandbox.WorkspaceWrite, Workspace: tb.TempDir()}); err != nil {
		tb.Skipf("this machine cannot confine calls: %v", err)
	}
}

func TestScripts(t *testing.T) {
	t.Parallel()
	needsSandbox(t)
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script", Setup: scriptEnv, Condition: scriptCondition, RequireExplicitExec: true, Cmds: scriptCommands(),
	})
}

// TestEveryCommandOfTheReadmeWorks runs the README's blocks as a reader would:
// one after the other, the commands of the clone in a copy of the clone.
func TestEveryCommandOfTheReadmeWorks(t *testing.T) {
	t.Parallel()
	needsSandbox(t)
	root := must.Get(filepath.Abs("../.."))(t)
	readme := must.Get(os.ReadFile(filepath.Join(root, "README.md")))(t)
	script := filepath.Join(t.TempDir(), "readme.txtar")
	must.Do(t, os.WriteFile(script, []byte(readmeScript(t, string(readme), root)), 0o600))
	testscript.Run(t, testscript.Params{Files: []string{script}, Setup: func(e *testscript.Env) error {
		e.Setenv("GOBIN", filepath.Join(e.WorkDir, "bin"))
		e.Setenv("GOCACHE", goEnv("GOCACHE", filepath.Join(os.Getenv("HOME"), ".cache", "go-build")))
		e.Setenv("GOMODCACHE", goEnv("GOMODCACHE", filepath.Join(goEnv("GOPATH", filepath.Join(os.Getenv("HOME"), "go")), "pkg", "mod")))
		e.Setenv("GOFLAGS", "-mod=mod")
		return scriptEnv(e)
	}})
}

func goEnv(name, otherwise string) string {
	if v := os.Getenv(name); v != "" {
		return v
	}
	return otherwise
}

// readmeScript turns the ```sh blocks of the README into a script. The block
// that runs the tests is this very test's caller, and is only checked to be the
// command that .ci/run uses.
func readmeScript(t *testing.T, readme, root string) string {
	t.Helper()
	var steps, parts strings.Builder
	blocks := strings.Split(readme, "```sh\n")[1:]
	for i, b := range blocks {
		body, _, ok := strings.Cut(b, "```")
		if !ok {
			t.Fatalf("block %d of the README is not closed", i+1)
		}
		if strings.TrimSpace(body) == "go test ./..." {
			requireInCI(t, root, strings.TrimSpace(body))
			continue
		}
		dir := "$WORK/ws"
		if strings.Contains(body, "go ") && strings.Contains(body, "./cmd/toold") {
			dir = root
		}
		name := fmt.Sprintf("block%d.sh", i+1)
		fmt.Fprintf(&steps, "cd %s\nexec bash -euo pipefail $WORK/%s\n", dir, name)
		fmt.Fprintf(&parts, "-- %s --\n%s", name, body)
	}
	return steps.String() + parts.String()
}

func requireInCI(t *testing.T, root, command string) {
	t.Helper()
	ci := must.Get(os.ReadFile(filepath.Join(root, ".ci", "run")))(t)
	if !strings.Contains(string(ci), command) {
		t.Errorf(".ci/run does not run the README's test command %q", command)
	}
}
