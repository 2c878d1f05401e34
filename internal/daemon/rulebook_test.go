package daemon

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/policy"
)

const before = "version: 1\ncommands:\n  - {id: a, decision: ask, run: [\"make **\"]}\n"

func except(command string) Entry {
	return Entry{Person: "ada", Call: command, Changes: []policy.Change{{Section: "except", At: "a", Texts: []string{command}}}}
}

func nothing() error { return nil }

// An answer is said to be written, or not, and the policy is as it is said.
func TestARuleThatCannotBeNotedIsTakenBack(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "policy.yaml")
	must.Do(t, os.WriteFile(file, []byte(before), 0o600))
	reloads := 0
	err := rulebookIn(filepath.Join(t.TempDir(), "missing")).add(file, except("make all"), func() error { reloads++; return nil })
	if err == nil || !strings.Contains(err.Error(), "remembered.jsonl") {
		t.Errorf("the error is %v", err)
	}
	if now := must.Get(os.ReadFile(file))(t); string(now) != before || reloads != 2 {
		t.Errorf("after %d reloads the policy is\n%s", reloads, now)
	}
}

func TestUndoGoesOnBehindWhatWasChangedByHand(t *testing.T) {
	t.Parallel()
	replaced := func(old, by string) func(t *testing.T, file string) {
		return func(t *testing.T, file string) {
			text := must.Get(os.ReadFile(file))(t)
			must.Do(t, os.WriteFile(file, []byte(strings.Replace(string(text), old, by, 1)), 0o600))
		}
	}
	for name, change := range map[string]func(t *testing.T, file string){
		"taken out": replaced(`except: ["make two"]`, ""),
		"gone":      func(t *testing.T, file string) { must.Do(t, os.Remove(file)) },
	} {
		first, second := filepath.Join(t.TempDir(), "first.yaml"), filepath.Join(t.TempDir(), "second.yaml")
		must.Do(t, os.WriteFile(first, []byte(before), 0o600))
		must.Do(t, os.WriteFile(second, []byte(before), 0o600))
		b := rulebookIn(t.TempDir())
		must.Do(t, b.add(first, except("make one"), nothing))
		must.Do(t, b.add(second, except("make two"), nothing))
		replaced("version", "versoin")(t, second)
		if _, err := b.undo(); err == nil {
			t.Errorf("%s: a policy with a fault was changed", name)
		}
		replaced("versoin", "version")(t, second)
		change(t, second)
		if _, err := b.undo(); err == nil || !strings.Contains(err.Error(), second) {
			t.Errorf("%s: %v", name, err)
		}
		must.Get(b.undo())(t)
		if now := must.Get(os.ReadFile(first))(t); string(now) != before {
			t.Errorf("%s: the policy is\n%s", name, now)
		}
	}
}
