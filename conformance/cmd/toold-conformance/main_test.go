//go:build linux

package main_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/toold/toold/conformance/suite"
	"github.com/toold/toold/conformance/suite/escape"
	"github.com/toold/toold/internal/race"
)

// build builds the command.
func build(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "toold-conformance")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return program
}

// play builds the command, plays cases with it and returns its verdicts and its exit code.
func play(t *testing.T, target string, args ...string) (verdicts map[string]string, code int) {
	t.Helper()
	if race.Enabled {
		t.Skip("the command is built without the race detector")
	}
	probe := exec.CommandContext(t.Context(), "true")
	probe.SysProcAttr = escape.WorldAttributes(false)
	if err := probe.Run(); err != nil {
		t.Skipf("no world can be made here: %v", err)
	}
	cmd := exec.CommandContext(t.Context(), build(t), append([]string{"-target", target, "-json"}, args...)...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	verdicts = map[string]string{}
	for d := json.NewDecoder(&out); d.More(); {
		var r struct{ Target, ID, Verdict, Why string }
		if err := d.Decode(&r); err != nil {
			t.Fatal(err)
		}
		if r.Target != target {
			t.Errorf("a result of %q, want %q", r.Target, target)
		}
		verdicts[r.ID] = r.Verdict
		t.Logf("%s: %s %.500s", r.ID, r.Verdict, r.Why)
	}
	if errs.Len() > 0 {
		t.Log(errs.String())
	}
	return verdicts, cmd.ProcessState.ExitCode()
}

// some are cases of each kind.
const some = "^(X01|K06|K19|T08|T12|fs-03|rd-01|ok-01|eg-01)$"

// notPlayed are the verdicts on cases that no adapter can play, and on toold's own.
var notPlayed = map[string]string{"K19": "left out", "T08": "left out", "T12": "not applicable", "eg-01": "left out"}

func TestTheDaemonPassesAndBlocks(t *testing.T) {
	t.Parallel()
	want := map[string]string{"X01": "passed", "K06": "passed", "fs-03": "blocked", "rd-01": "blocked", "ok-01": "usable"}
	maps.Copy(want, notPlayed)
	got, code := play(t, "toold", "-run", some)
	if d := cmp.Diff(want, got); d != "" || code != 0 {
		t.Errorf("exit code %d; verdicts (-want +got):\n%s", code, d)
	}
}

func TestTheSuitesAboutTooldItselfArePlayedOnToold(t *testing.T) {
	t.Parallel()
	const some = "^(ol-02-bash-error-exit|Co001|as-01-register)$"
	want := map[string]string{"ol-02-bash-error-exit": "passed", "Co001": "passed", "as-01-register": "not applicable"}
	got, code := play(t, "toold", "-suite", "wire,policy", "-run", some)
	if d := cmp.Diff(want, got); d != "" || code != 0 {
		t.Errorf("exit code %d; verdicts (-want +got):\n%s", code, d)
	}
	if got, code := play(t, "bash", "-suite", "wire", "-run", some); len(got) > 0 || code != 2 {
		t.Errorf("bash: exit code %d and %v, want 2 and nothing", code, got)
	}
}

// What confines nothing must be seen to: else "blocked" would mean nothing.
func TestPlainBashFailsAndLetsEverythingOut(t *testing.T) {
	t.Parallel()
	want := map[string]string{"X01": "passed", "K06": "failed", "fs-03": "escaped", "rd-01": "escaped", "ok-01": "usable"}
	maps.Copy(want, notPlayed)
	got, code := play(t, "bash", "-run", some)
	if d := cmp.Diff(want, got); d != "" || code != 1 {
		t.Errorf("exit code %d; verdicts (-want +got):\n%s", code, d)
	}
}

// A case that expects what does not happen is never passed.
func TestFalseCasesAreNotPassed(t *testing.T) {
	t.Parallel()
	lines, err := suite.ReadLines(func(_ string, text []byte) string { return string(text) }, []string{"../../testdata/exec-false.jsonl"})
	if err != nil {
		t.Fatal(err)
	}
	// What cannot be understood is refused for the whole file.
	lines = slices.DeleteFunc(lines, func(line string) bool { return strings.Contains(line, "smell") || strings.Contains(line, "weather") })
	dir := t.TempDir()
	for name, text := range map[string]string{"exec.jsonl": strings.Join(lines, "\n"), "exec-own.jsonl": ""} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	verdicts, code := play(t, "bash", "-suite", "exec", "-cases", dir)
	failed := 0
	for id, verdict := range verdicts {
		if verdict == "passed" {
			t.Errorf("%s is passed", id)
		}
		if verdict == "failed" {
			failed++
		}
	}
	if failed < 15 || code != 1 {
		t.Errorf("%d of %d cases failed, and the exit code is %d", failed, len(verdicts), code)
	}
}

func TestTablesAreMadeOfWhatWasPlayedBefore(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "played.json")
	text := `{"suite":"exec","target":"x","version":"1.2","played":"2026-01-02, Linux 6","id":"X01","verdict":"passed"}
{"suite":"exec","target":"x","version":"1.2","played":"2026-01-02, Linux 6","id":"X02","verdict":"failed","why":"it did"}
{"suite":"exec","target":"x","version":"1.2","played":"2026-01-02, Linux 6","id":"X03","verdict":"failed","why":"played again below"}
{"suite":"exec","target":"x","version":"1.2","played":"2026-01-02, Linux 6","id":"X03","verdict":"not applicable","why":"x has no such thing"}
`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), build(t), "-suite", "exec", "-markdown", file).Output()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Errorf("it ended with %v, want the exit code 1", err)
	}
	for _, want := range []string{"| x | 1.2 | 2026-01-02, Linux 6 | 1 | 1 | 1 | 0 |\n", "- failed: X02\n", "- not applicable: 1: x has no such thing\n"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("the tables lack %q:\n%s", want, out)
		}
	}
}
