//go:build linux

package conformance

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/toold/toold/conformance/suite"
	"github.com/toold/toold/conformance/suite/escape"
	"github.com/toold/toold/internal/race"
)

// The state of a run of this test binary: the results are printed at its end.
var (
	underTest = program{variable: "TOOLD_BIN", source: daemonSource, flags: []string{"-ldflags=-s"}}
	attacker  = program{source: "./testdata/escape", env: []string{"CGO_ENABLED=0"}}
	results   = tally{name: "wire"}
	executed  = tally{name: "exec"}
	unchecked notes
)

// daemonSource is the package of the daemon under test.
const daemonSource = "../cmd/toold"

func TestMain(m *testing.M) {
	if escape.InWorld(newEscapeTarget) || inNetwork() {
		return
	}
	if race.Enabled {
		fmt.Println("skipped: the daemon under test is built without the race detector")
		return
	}
	if err := playMoreAtOnce(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	code := m.Run()
	underTest.remove()
	attacker.remove()
	if err := summarise(os.Getenv("TOOLD_CASES_RESULTS")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// playMoreAtOnce sets how many cases are played side by side, unless -parallel says
// so: the usual number is that of processors, and most cases wait most of the time.
func playMoreAtOnce() error {
	flag.Parse()
	told := false
	flag.Visit(func(f *flag.Flag) { told = told || f.Name == "test.parallel" })
	if told {
		return nil
	}
	return flag.Set("test.parallel", strconv.Itoa(casesPerProcessor*runtime.GOMAXPROCS(0)))
}

const casesPerProcessor = 3

// summarise prints what the cases came to, also at the end of a file if one is named: the go
// command shows what a package prints only with -v, or when it fails.
func summarise(file string) error {
	var text bytes.Buffer
	results.print(&text)
	executed.print(&text)
	decided.print(&text)
	attackedC.print(&text)
	attackedB.print(&text)
	attackedBwrap.print(&text)
	attacked.print(&text)
	fmt.Print(text.String())
	if file == "" {
		return nil
	}
	out, err := os.OpenFile(file, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = out.Write(text.Bytes())
	return errors.Join(err, out.Close())
}

// TestWireCases plays the case files against the daemon.
func TestWireCases(t *testing.T) {
	t.Parallel()
	playWire(t, false)
}

// TestWireCasesThatMeasure plays the cases that measure time, one after the other and
// before all that run side by side.
func TestWireCasesThatMeasure(t *testing.T) { playWire(t, true) }

func playWire(t *testing.T, alone bool) {
	cases, err := readCases(namedFiles("TOOLD_CASES_WIRE", "wire.jsonl", "wire-own.jsonl")...)
	if err != nil {
		t.Fatal(err)
	}
	bin := daemonOrSkip(t)
	cases = slices.DeleteFunc(cases, func(l caseLine) bool { return measures(l.c) != alone })
	results.begin(len(cases))
	for _, l := range cases {
		t.Run(l.id, func(t *testing.T) {
			if !alone {
				t.Parallel()
			}
			playLine(t, bin, l)
		})
	}
}

// namedFiles lists the case files that a variable of the environment names,
// separated by commas or colons, or the one of this package.
func namedFiles(variable string, own ...string) []string {
	named := os.Getenv(variable)
	if named == "" {
		for i, name := range own {
			own[i] = filepath.Join("testdata", name)
		}
		return own
	}
	paths := strings.FieldsFunc(named, func(r rune) bool { return r == ',' || r == ':' })
	for i, path := range paths {
		paths[i] = fromRoot(path)
	}
	return paths
}

// fromRoot finds a relative path: a test runs in its package's directory, but who
// names one may well mean it from the root of the project.
func fromRoot(path string) string {
	if _, err := os.Stat(path); err != nil && !filepath.IsAbs(path) {
		return filepath.Join("..", path)
	}
	return path
}

// playLine plays one case and counts it.
func playLine(t *testing.T, bin string, l caseLine) {
	if why := notApplicable(l.c); why != "" {
		results.skip(l.id, why)
		t.Skip("not applicable: " + why)
	}
	var reasons []string
	if why := l.unreadable(); why != "" {
		reasons = []string{why}
	} else {
		try := suite.Trial(func(base string) (reasons, late []string) { return play(t.Context(), bin, base, l.c, unchecked.add) })
		reasons = try.Play(t.TempDir(), turn, again(l.id))
	}
	results.count(l.id, reasons)
	for _, why := range reasons {
		t.Error(why)
	}
}

// measures reports whether a case measures time.
func measures(c wireCase) bool {
	return c.Expect.MaxMS > 0 || slices.ContainsFunc(c.Expect.Invariants, func(s string) bool { return strings.HasSuffix(s, " ms") })
}

// daemonOrSkip returns the daemon, or skips the test where no call can be
// confined: nothing runs there, by design.
func daemonOrSkip(t *testing.T) string {
	t.Helper()
	if why := unconfined(t.Context()); why != "" {
		t.Skip(why)
	}
	bin, err := underTest.pathOf(context.WithoutCancel(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	return bin
}

// unconfined returns why this machine cannot confine calls, "" if it can. It does
// not ask the daemon: one that wrongly believes so must fail the cases.
func unconfined(ctx context.Context) string {
	cmd := exec.CommandContext(ctx, "sh", "-c", "mount -t tmpfs none /tmp && mount -t proc none /proc")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Sprintf("no call can be confined here: %v %s(toold doctor tells how to fix it)", err, out)
	}
	return ""
}

// tally counts the cases.
type tally struct {
	name string

	mu             sync.Mutex
	expected       int // -1 when no case was to be played
	passed, failed []string
	skipped        map[string]string
	reasons        map[string][]string
}

// begin says how many cases will be counted.
func (r *tally) begin(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.expected += n
}

func (r *tally) skip(id, why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.skipped == nil {
		r.skipped = map[string]string{}
	}
	r.skipped[id] = why
}

func (r *tally) count(id string, reasons []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(reasons) == 0 {
		r.passed = append(r.passed, id)
		return
	}
	if r.reasons == nil {
		r.reasons = map[string][]string{}
	}
	r.failed = append(r.failed, id)
	r.reasons[id] = reasons
}

// print names what failed, and counts the rest in one line. With -v it also names
// what was not played and what was not checked.
func (r *tally) print(w io.Writer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.expected == 0 {
		return
	}
	if r.name == "wire" && testing.Verbose() {
		for _, text := range unchecked.sorted() {
			fmt.Fprintln(w, "wire: not checked:", text)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(r.skipped)) {
		if testing.Verbose() {
			fmt.Fprintf(w, "%s: not applicable: %s: %s\n", r.name, id, r.skipped[id])
		}
	}
	slices.Sort(r.failed)
	for _, id := range r.failed {
		first, _, _ := strings.Cut(r.reasons[id][0], "\n")
		fmt.Fprintf(w, "%s: failed: %s: %s\n", r.name, id, first)
	}
	fmt.Fprintf(w, "%s: %d passed, %d failed, %d not applicable%s\n", r.name, len(r.passed), len(r.failed), len(r.skipped), because(slices.Collect(maps.Values(r.skipped))))
}

// because returns the reasons for which cases were not played, each with its count.
func because(reasons []string) string {
	count := make(map[string]int)
	for _, why := range reasons {
		count[why]++
	}
	var parts []string
	for _, why := range slices.Sorted(maps.Keys(count)) {
		parts = append(parts, fmt.Sprintf("%d: %s", count[why], why))
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, "; ") + ")"
}

// notes is a list that several cases add to.
type notes struct {
	mu   sync.Mutex
	text []string
}

func (n *notes) add(s string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.text = append(n.text, s)
}

func (n *notes) sorted() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Sorted(slices.Values(n.text))
}
