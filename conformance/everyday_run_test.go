//go:build linux

package conformance

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/toold/toold/client"
	"github.com/toold/toold/conformance/suite/escape"
	"github.com/toold/toold/executor"
)

// everydayRules says how the everyday commands are run, and what may differ.
type everydayRules struct {
	About           string
	Decided, Varies []struct {
		Why   string
		Match []string
	}
}

// reason returns why the first of some rules matches a text, "" when none does.
func reason(rules []struct {
	Why   string
	Match []string
}, text string,
) string {
	for _, r := range rules {
		for _, m := range r.Match {
			if regexp.MustCompile(`^(?s:` + m + `)$`).MatchString(text) {
				return r.Why
			}
		}
	}
	return ""
}

// everyday runs the everyday commands: each under plain bash, and through a daemon with
// the built-in policy, in the same directory and in fresh copies of one project.
type everyday struct {
	t     *testing.T
	rules everydayRules
	tree  *tree // the project
	site  *site
	agent *client.Client
}

func newEveryday(t *testing.T) *everyday {
	t.Helper()
	if why := unconfined(t.Context()); why != "" {
		t.Skip(why)
	}
	e := &everyday{t: t}
	text, err := os.ReadFile("testdata/everyday-run.json")
	if err == nil {
		err = json.Unmarshal(text, &e.rules)
	}
	if err != nil {
		t.Fatal(err)
	}
	program, err := underTest.pathOf(context.WithoutCancel(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	e.site = &site{
		home: filepath.Join(base, "home"), workspace: filepath.Join(base, "ws"), ping: usualPing,
		state: filepath.Join(base, "state"), config: filepath.Join(base, "config.yaml"),
	}
	e.do(os.Mkdir(e.site.home, 0o755), os.Mkdir(e.site.workspace, 0o755), os.WriteFile(e.site.config, []byte("version: 1\n"), 0o600))
	fixture, err := filepath.Abs("testdata/everyday-fixture.sh")
	e.do(err)
	e.must(exec.Command("bash", fixture), e.site.workspace)
	e.tree, err = keepTree(e.site.workspace)
	e.do(err)
	d, err := startDaemon(t.Context(), program, e.site)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.stop(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
	})
	e.agent, err = client.Dial(t.Context(), client.Options{URL: d.ws, Token: d.tokens["agent"], Silent: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.agent.Close() })
	return e
}

// do ends the test at an error.
func (e *everyday) do(errs ...error) {
	e.t.Helper()
	if err := errors.Join(errs...); err != nil {
		e.t.Fatal(err)
	}
}

// must runs a command that must succeed.
func (e *everyday) must(cmd *exec.Cmd, dir string) {
	e.t.Helper()
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		e.t.Fatalf("%v: %v\n%s", cmd.Args, err, out)
	}
}

// changes are what is not as the fixture made it; the workspace is put back.
func (e *everyday) changes() map[string]string {
	e.t.Helper()
	found, err := e.tree.changes()
	e.do(err, e.tree.restore())
	return found
}

// ending is what a command comes to.
type ending struct {
	refused string // why it did not run
	denied  bool   // and no person could have said yes
	code    int
	output  string
	files   map[string]string // by path below the workspace, what there is
}

// plainly runs a command under bash alone, with the environment of the daemon's calls,
// and without network.
func (e *everyday) plainly(command string) ending {
	e.t.Helper()
	cmd := exec.CommandContext(e.t.Context(), "bash", "-c", command)
	cmd.Dir = e.site.workspace
	cmd.Env = executor.BaseEnv(executor.EnvOptions{From: []string{"HOME=" + e.site.home, "PATH=" + os.Getenv("PATH")}, Workspace: e.site.workspace})
	cmd.SysProcAttr = escape.WorldAttributes(false)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		e.t.Fatalf("%s: %v", command, err)
	}
	return ending{code: cmd.ProcessState.ExitCode(), output: string(out), files: e.changes()}
}

// confined runs a command through the daemon.
func (e *everyday) confined(id, command string) ending {
	e.t.Helper()
	r, err := e.agent.Call(e.t.Context(), client.Call{ID: id, Tool: "bash", Arguments: map[string]any{"command": command}}, client.Events{})
	if err != nil {
		e.t.Fatalf("%s: %v", command, err)
	}
	o := ending{output: r.Result, files: e.changes()}
	switch {
	case r.ExitCode != nil:
		o.code = *r.ExitCode
	case r.Signal != nil:
		o.code = -1
	default:
		o.refused, o.denied = r.Result, !strings.Contains(r.Result, "asks a person")
	}
	return o
}

// difference tells in what two outcomes differ, "" when in nothing.
func (rules *everydayRules) difference(plain, confined ending) string {
	if plain.code != confined.code {
		return fmt.Sprintf("exit code %d, and %d under plain bash:\n%.400s\nplain bash:\n%.400s", confined.code, plain.code, confined.output, plain.output)
	}
	names := differing(plain.files, confined.files, func(name string) bool { return reason(rules.Varies, name) != "" })
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("%d files differ, such as %v\n%.300s", len(names), names[:min(len(names), 6)], confined.output)
}

// missing returns the first program of a command that is not on this machine.
func missing(command string) string {
	for _, part := range regexp.MustCompile(`\|\||&&|[|;]`).Split(command, -1) {
		for _, word := range strings.Fields(part) {
			if strings.Contains(word, "=") {
				continue
			}
			if !regexp.MustCompile(`^[a-z][a-z0-9+_.-]*$`).MatchString(word) {
				break
			}
			if err := exec.Command("bash", "-c", "type "+word).Run(); err != nil {
				return word
			}
			break
		}
	}
	return ""
}

// everydayVariable selects what TestEverydayCommandsEndAsUnderPlainBash runs: a regular
// expression of an ecosystem, a space and an id. By default these are half of those
// that need no compiler; "." is all.
const everydayVariable = "TOOLD_EVERYDAY"

// ecosystem counts what came of its everyday commands.
type ecosystem struct {
	unasked, asked int
	open           int            // they need the network, or do not end
	absent         map[string]int // by the program that is not on this machine
}

func (c *ecosystem) String() string {
	absent := make([]string, 0, len(c.absent))
	for _, name := range slices.Sorted(maps.Keys(c.absent)) {
		absent = append(absent, fmt.Sprintf("%s (%d)", name, c.absent[name]))
	}
	return fmt.Sprintf("%d ended unasked as under plain bash, %d were asked; not applicable: %d need the network or do not end; programs that are not here: %s",
		c.unasked, c.asked, c.open, cmp.Or(strings.Join(absent, ", "), "none"))
}

// compare runs one command both ways.
func (e *everyday) compare(c *ecosystem, l policyLine) {
	e.t.Helper()
	command := l.c.Arguments["command"].(string)
	if reason(e.rules.Decided, command) != "" {
		c.open++
		return
	}
	if program := missing(command); program != "" {
		c.absent[program]++
		return
	}
	plain, confined := e.plainly(command), e.confined(l.c.ID, command)
	switch d := e.rules.difference(plain, confined); {
	case confined.denied:
		e.t.Errorf("%s: %s: denied: %.300s", l.c.ID, command, confined.refused)
	case confined.refused != "":
		c.asked++
		e.t.Logf("%s %s: %.200s", l.c.ID, command, confined.refused)
	case d != "":
		e.t.Errorf("%s: %s: %s", l.c.ID, command, d)
	default:
		c.unasked++
	}
}

// Of everyday commands 97 of 100 run unasked and end as under bash alone, with the same exit
// code and the same files; the others are asked, and none is denied.
func TestEverydayCommandsEndAsUnderPlainBash(t *testing.T) {
	t.Parallel()
	e := newEveryday(t)
	only := regexp.MustCompile(cmp.Or(os.Getenv(everydayVariable), "^(git|shell) .*[05]$"))
	by := map[string]*ecosystem{}
	for _, l := range everydayCases(t) {
		if !only.MatchString(l.c.Category + " " + l.c.ID) {
			continue
		}
		if by[l.c.Category] == nil {
			by[l.c.Category] = &ecosystem{absent: map[string]int{}}
		}
		e.compare(by[l.c.Category], l)
	}
	unasked, asked := 0, 0
	for _, name := range slices.Sorted(maps.Keys(by)) {
		t.Logf("%s: %v", name, by[name])
		unasked, asked = unasked+by[name].unasked, asked+by[name].asked
	}
	t.Logf("everyday: %d of %d unasked", unasked, unasked+asked)
	if unasked == 0 || unasked*100 < leastUnasked*(unasked+asked) {
		t.Errorf("%d of %d run unasked, and at least %d of 100 should", unasked, unasked+asked, leastUnasked)
	}
}
