package config

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toold/toold/sandbox"
)

func TestTierCHasToBeAskedFor(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	for text, want := range map[string]sandbox.Tier{
		"":                                  sandbox.TierB,
		"sandbox: {allow_degraded: none}":   sandbox.TierA,
		"sandbox: {allow_degraded: tier-b}": sandbox.TierB,
		"sandbox: {allow_degraded: tier-c}": sandbox.TierC,
	} {
		if got, err := m.loadText(t, "version: 1\n"+text+"\n"); err != nil || got.Lowest != want {
			t.Errorf("%q: the lowest tier is %v, %v", text, got.Lowest, err)
		}
	}
}

func TestLaunchersHaveNames(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	for text, want := range map[string]string{
		"":                             "auto",
		"sandbox: {launcher: native}":  "native",
		"sandbox: {launcher: bwrap}":   "bwrap",
		"sandbox: {launcher: /my/one}": "",
	} {
		got, err := m.loadText(t, "version: 1\n"+text+"\n")
		if want == "" && (err == nil || !strings.Contains(err.Error(), "sandbox.launcher")) || want != "" && (err != nil || got.Sandbox.Launcher != want) {
			t.Errorf("%q: the launcher is %q, %v", text, got.Sandbox.Launcher, err)
		}
	}
}

func TestFoldersToReadAreNamed(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, filepath.Join(m.home, "go", "file"), "")
	m.write(t, filepath.Join(m.home, ".gitconfig"), "")
	got, err := m.loadText(t, "version: 1\n")
	if diff := cmp.Diff([]string{filepath.Join(m.home, ".gitconfig")}, got.Sandbox.Read); err != nil || diff != "" {
		t.Error(err, diff)
	}
	got, err = m.loadText(t, "version: 1\nsandbox: {read: [~/go, ~/none]}\n")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{filepath.Join(m.home, "go")}, got.Sandbox.Read); diff != "" {
		t.Error(diff)
	}
	if !strings.Contains(strings.Join(got.Warnings, "\n"), "none does not exist") {
		t.Errorf("no word about the missing one: %q", got.Warnings)
	}
	if _, err := m.loadText(t, "version: 1\nsandbox: {read: [/]}\n"); err == nil || !strings.Contains(err.Error(), "cannot be /") {
		t.Errorf("got %v", err)
	}
}
