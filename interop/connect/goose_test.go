package connect

import (
	"strings"
	"testing"

	"github.com/toold/toold/internal/edit"
)

func TestGooseUsesTooldInsteadOfItsShell(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	const file = ".config/goose/config.yaml"
	before := "# mine\nGOOSE_MODEL: gpt-5   # best\nextensions:\n  developer:\n    # the shell\n    enabled: true\n    type: builtin\n    name: developer\n\n  memory: {enabled: true, type: builtin, name: memory}\nlast: 'x'"
	p.write(file, before)
	p.connect("goose")
	own := `  toold: {"enabled": true, "type": "stdio", "name": "toold", "cmd": "/opt/toold", "args": ["--token=goose", "mcp"], "timeout": 300}`
	for _, name := range gooseOwn()[1:] {
		own += "\n  " + name + ":\n    enabled: false\n    type: \"platform\"\n    name: \"" + name + "\""
	}
	want := strings.Replace(strings.Replace(before, "enabled: true\n    type", "enabled: false\n    type", 1), "\nlast", "\n"+own+"\nlast", 1)
	p.expect(file, want)
	others := strings.ReplaceAll(strings.SplitAfterN(own, "\n", 2)[1], `"`, "") + "\n"
	// Goose writes the file anew, in its own form.
	p.write(file, "extensions:\n  developer:\n    enabled: false\n    type: builtin\n    name: developer\n  toold:\n    enabled: true\n    type: stdio\n    name: toold\n    cmd: /opt/toold\n    args:\n    - --token=goose\n    - mcp\n    timeout: 300\n"+others+"GOOSE_MODEL: other\n")
	if again, err := p.plan("goose"); err != nil || !again.Empty() {
		t.Errorf("there is something to do: %v\n%s", err, again.Diff())
	}
	p.undo("goose")
	if got, want := p.read(file), "extensions:\n  developer:\n    enabled: true\n    type: builtin\n    name: developer\nGOOSE_MODEL: other\n"; got != want {
		t.Errorf("the file is %q, expected %q", got, want)
	}
	p.write(file, before)
	p.connect("goose")
	p.undo("goose")
	p.expect(file, before)
}

func TestGooseHasItsShellWithoutBeingConfigured(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	p.connect("goose")
	var own struct{ Enabled *bool }
	ok, err := edit.Value(edit.YAML, p.read(".config/goose/config.yaml"), edit.Path{"extensions", "developer"}, &own)
	if !ok || err != nil || own.Enabled == nil || *own.Enabled {
		t.Errorf("the shell of Goose: %v, %v", ok, err)
	}
}

func TestProfilesOfCodexThatGoAroundAreNamed(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	p.write(".codex/config.toml", "[profiles.fast]\nsandbox_mode = 'danger-full-access'\n[profiles.plain]\nmodel = 'x'\n")
	p.write(".codex/loose.config.toml", "approval_policy = 'on-request'\n")
	p.write(".codex/plain.config.toml", "model = 'x'\n")
	a, _ := Named("codex")
	got := strings.Join(a.Warnings(p.Setup), "\n")
	for _, want := range []string{"the profile fast in ", "sets sandbox_mode itself", "loose.config.toml sets approval_policy itself"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in %q", want, got)
		}
	}
	if strings.Contains(got, "plain") {
		t.Errorf("a profile without such settings is named: %q", got)
	}
}
