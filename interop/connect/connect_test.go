package connect

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toold/toold/internal/must"
)

// person is a user with a home, who has agents.
type person struct {
	t *testing.T
	Setup
}

func newPerson(t *testing.T) person {
	t.Helper()
	home := t.TempDir()
	return person{t, Setup{
		Home: home, Getenv: func(string) string { return "" }, StateDir: filepath.Join(home, "state"),
		Program: "/opt/toold", URL: "ws://127.0.0.1:7717", Token: strings.Repeat("5ec7e7", 10),
	}}
}

func (p person) write(name, text string) string {
	p.t.Helper()
	path := filepath.Join(p.Home, name)
	must.Do(p.t, os.MkdirAll(filepath.Dir(path), 0o700))
	must.Do(p.t, os.WriteFile(path, []byte(text), 0o640))
	return path
}

func (p person) read(name string) string {
	p.t.Helper()
	text, err := os.ReadFile(filepath.Join(p.Home, name))
	if err != nil {
		p.t.Error(err)
	}
	return string(text)
}

// expect compares the content of a file.
func (p person) expect(name, want string) {
	p.t.Helper()
	if diff := cmp.Diff(want, p.read(name)); diff != "" {
		p.t.Errorf("%s: %s", name, diff)
	}
}

func (p person) expectNo(name string) {
	p.t.Helper()
	if _, err := os.Stat(filepath.Join(p.Home, name)); err == nil {
		p.t.Errorf("%s exists", name)
	}
}

func (p person) plan(name string) (Plan, error) {
	p.t.Helper()
	a, ok := Named(name)
	if !ok {
		p.t.Fatalf("no agent %s", name)
	}
	return a.Plan(p.Setup)
}

// connect makes the change for an agent, and has the next plan empty.
func (p person) connect(name string) Plan {
	p.t.Helper()
	plan := must.Get(p.plan(name))(p.t)
	must.Do(p.t, plan.Apply())
	if again, err := p.plan(name); err != nil || !again.Empty() {
		p.t.Errorf("a second time there is something to do: %v\n%s", err, again.Diff())
	}
	return plan
}

func (p person) undo(name string) []Undone {
	p.t.Helper()
	list := must.Get(Undo(p.StateDir, name))(p.t)
	if left, err := Connected(p.StateDir); len(left) > 0 || err != nil {
		p.t.Errorf("%v is connected still, %v", left, err)
	}
	if backups, _ := filepath.Glob(filepath.Join(p.StateDir, "connect", "*")); len(backups) > 0 {
		p.t.Errorf("%v is left", backups)
	}
	return list
}

func TestMissingFilesAreMadeAndRemoved(t *testing.T) {
	t.Parallel()
	for _, a := range Agents() {
		p := newPerson(t)
		plan := p.connect(a.Name)
		for _, s := range plan.steps {
			info, err := os.Stat(s.target)
			if err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("%s: %v, %v", s.target, info, err)
			}
		}
		if strings.Contains(plan.Diff(), p.Token) {
			t.Errorf("%s: the diff shows the token:\n%s", a.Name, plan.Diff())
		}
		for _, u := range p.undo(a.Name) {
			if !u.Restored {
				t.Errorf("%s: %+v", a.Name, u)
			}
		}
		var left []string
		_ = filepath.WalkDir(p.Home, func(path string, _ os.DirEntry, _ error) error {
			left = append(left, strings.TrimPrefix(path, p.Home))
			return nil
		})
		if diff := cmp.Diff([]string{"", "/state", "/state/connect"}, left); diff != "" {
			t.Errorf("%s: %s", a.Name, diff)
		}
	}
}

// withToken lists the files outside of the state directory that contain the token.
func (p person) withToken() (list []string) {
	p.t.Helper()
	must.Do(p.t, filepath.WalkDir(p.Home, func(path string, e os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case path == p.StateDir:
			return filepath.SkipDir
		case !e.Type().IsRegular():
			return nil
		}
		text, err := os.ReadFile(path)
		if strings.Contains(string(text), p.Token) {
			list = append(list, path)
		}
		return err
	}))
	return list
}

// TestTokensStayInTheStateDirectory: calls can read what lies elsewhere, also while connect
// writes it.
func TestTokensStayInTheStateDirectory(t *testing.T) {
	t.Parallel()
	const own = "[[environments]]\nid = \"box\"\nurl = \"ws://box\"\n"
	for _, a := range Agents() {
		p := newPerson(t)
		p.Getenv = func(name string) string {
			return map[string]string{"CODEX_HOME": filepath.Join(p.Home, "else where")}[name]
		}
		p.write("dotfiles/environments.toml", own)
		at := filepath.Join(p.Home, "else where", "environments.toml")
		must.Do(t, errors.Join(os.Mkdir(filepath.Dir(at), 0o700), os.Symlink("../dotfiles/environments.toml", at)))
		p.connect(a.Name)
		if list := p.withToken(); list != nil {
			t.Errorf("%s: the token is in %v", a.Name, list)
		}
		if a.Name == "codex" {
			text := p.read("else where/environments.toml")
			if !strings.Contains(text, p.Token) || !strings.Contains(text, "ws://box") {
				t.Errorf("Codex reads %q", text)
			}
			// An editor may put a file in the place of the link.
			must.Do(t, os.Remove(filepath.Join(p.Home, "dotfiles/environments.toml")))
			p.write("dotfiles/environments.toml", text)
			p.connect(a.Name)
			if list := p.withToken(); list != nil {
				t.Errorf("the second time the token stays in %v", list)
			}
		}
		p.undo(a.Name)
		if text := p.read("else where/environments.toml"); text != own {
			t.Errorf("%s: afterwards there is %q", a.Name, text)
		}
		if to, err := os.Readlink(at); err != nil || to != "../dotfiles/environments.toml" {
			t.Errorf("%s: the user's link leads to %q, %v", a.Name, to, err)
		}
	}
}

func TestFilesWithCommentsAreRestoredByteForByte(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	before := "# mine\r\nmodel = \"gpt-5\"   # best\nsandbox_mode='danger-full-access'\n\n[tui]\nnotifications = [ # many\n  'a',\n]"
	path := p.write(".codex/config.toml", before)
	plan := p.connect("codex")
	want := strings.Replace(before, "'danger-full-access'\n", "\"workspace-write\"\napproval_policy = \"never\"\n", 1)
	p.expect(".codex/config.toml", want)
	for _, line := range []string{"-sandbox_mode='danger-full-access'", "+sandbox_mode=\"workspace-write\"", "+approval_policy = \"never\""} {
		if !strings.Contains(plan.Diff(), line+"\n") {
			t.Errorf("the diff has no line %q:\n%s", line, plan.Diff())
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("the file has another mode: %v, %v", info, err)
	}
	p.undo("codex")
	p.expect(".codex/config.toml", before)
}

func TestUndoLeavesAFileThatWasRemovedSince(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	path := p.write(".codex/config.toml", "model = \"a\"\n")
	p.connect("codex")
	must.Do(t, os.Remove(path))
	for _, u := range p.undo("codex") {
		if u.Restored == (u.Path == path) {
			t.Errorf("%+v", u)
		}
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("the file is there again")
	}
}

// A file that gets the token is closed to others, until Undo.
func TestTheTokenIsReadableByNoOneElse(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	path := p.write(".codex/environments.toml", "include_local = true\n")
	p.connect("codex")
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file with the token: %v, %v", info, err)
	}
	p.undo("codex")
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("the file without the token: %v, %v", info, err)
	}
}

func TestWhatIsThereAlreadyStays(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	before := "approval_policy = 'never'\nsandbox_mode = \"workspace-write\"\n"
	p.write(".codex/config.toml", before)
	p.connect("codex")
	p.expect(".codex/config.toml", before)
	p.write(".codex/config.toml", before+"x = 1\n")
	p.undo("codex")
	p.expect(".codex/config.toml", before+"x = 1\n")
}

func TestWhatWasEditedSinceKeepsTheEdit(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	for before, want := range map[string]string{
		"{\n  \"tools\": {\"exclude\": [\"web\"]}\n}\n": "{\n  \"model\": \"x\",\n  \"tools\": {\"exclude\": [\"web\"]}\n}\n",
		"{\n}\n": "{\n  \"model\": \"x\"\n}\n",
	} {
		p.write(".gemini/settings.json", before)
		p.connect("gemini")
		p.write(".gemini/settings.json", strings.Replace(p.read(".gemini/settings.json"), "{\n", "{\n  \"model\": \"x\",\n", 1))
		for _, u := range p.undo("gemini") {
			if u.Restored || u.Diff == "" || len(u.Kept) > 0 {
				t.Errorf("%+v", u)
			}
		}
		p.expect(".gemini/settings.json", want)
	}
}

// A file that is toold's alone stays when the user has made it their own.
func TestAWholeFileThatWasEditedStays(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	p.connect("claude")
	p.write(".claude/skills/toold/hooks/register.js", "// mine\n")
	kept := 0
	for _, u := range p.undo("claude") {
		kept += len(u.Kept)
	}
	if got := p.read(".claude/skills/toold/hooks/register.js"); kept != 1 || got != "// mine\n" {
		t.Errorf("%d files are kept, and the edited one is %q", kept, got)
	}
}

// Undo after two changes goes back to what was before the first.
func TestUndoOfTwoChangesGoesBackToTheFirst(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	before := "model = \"a\"\n"
	p.write(".codex/config.toml", before)
	p.connect("codex")
	p.URL = "ws://127.0.0.1:7718"
	p.connect("codex")
	if text := p.read(".codex/environments.toml"); !strings.Contains(text, "7718") {
		t.Errorf("the address is the former one:\n%s", text)
	}
	p.undo("codex")
	p.expect(".codex/config.toml", before)
	p.expectNo(".codex/environments.toml")
}

// And so it does when the user has edited the file between the two.
func TestUndoOfTwoChangesKeepsAnEditBetweenThem(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	p.write(".codex/config.toml", "model = \"a\"\n")
	p.connect("codex")
	p.write(".codex/config.toml", strings.Replace(p.read(".codex/config.toml"), "workspace-write", "read-only", 1)+"x = 1\n")
	p.connect("codex")
	p.undo("codex")
	p.expect(".codex/config.toml", "model = \"a\"\nsandbox_mode = \"read-only\"\nx = 1\n")
}

func TestALinkedFileIsChangedWhereItLies(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	p.write("dotfiles/codex.toml", "model = \"a\"\n")
	p.write(".codex/x", "")
	link := filepath.Join(p.Home, ".codex/config.toml")
	must.Do(t, os.Symlink("../dotfiles/codex.toml", link))
	p.connect("codex")
	if to, err := os.Readlink(link); to != "../dotfiles/codex.toml" || err != nil {
		t.Errorf("the link is %q, %v", to, err)
	}
	if text := p.read("dotfiles/codex.toml"); !strings.Contains(text, "approval_policy") {
		t.Errorf("the file is %q", text)
	}
	p.undo("codex")
	p.expect("dotfiles/codex.toml", "model = \"a\"\n")
}

func TestWhatCannotBeChangedSafelyIsRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		agent, file, text, want string
		mode                    os.FileMode
	}{
		"read-only":    {"codex", ".codex/config.toml", "model = \"a\"\n", "is read-only", 0o444},
		"broken TOML":  {"codex", ".codex/config.toml", "model = \"a\n", "line 1: basic strings", 0o600},
		"a table":      {"codex", ".codex/config.toml", "[approval_policy.granular]\nrules = true\n", "approval_policy is a table", 0o600},
		"broken JSON":  {"gemini", ".gemini/settings.json", "{\"tools\": }", "start of value", 0o600},
		"another kind": {"gemini", ".gemini/settings.json", "{\"tools\": []}", "tools is no object", 0o600},
		"not a list":   {"gemini", ".gemini/settings.json", "{\"tools\": {\"exclude\": \"Bash\"}}", "is no array", 0o600},
	} {
		p := newPerson(t)
		path := p.write(c.file, c.text)
		must.Do(t, os.Chmod(path, c.mode))
		_, err := p.plan(c.agent)
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v, want %q and the file in it", name, err, c.want)
		}
	}
}

func TestAFileThatChangedMeanwhileIsLeftAlone(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	p.write(".codex/config.toml", "model = \"a\"\n")
	plan := must.Get(p.plan("codex"))(t)
	p.write(".codex/config.toml", "model = \"b\"\n")
	if err := plan.Apply(); err == nil || !strings.Contains(err.Error(), "nothing was changed") {
		t.Errorf("it was applied: %v", err)
	}
	p.expectNo(".codex/environments.toml")
}

// When a later file cannot be written, the earlier ones are as they were.
func TestAllFilesAreWrittenOrNone(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	plan, err := p.plan("claude") // .claude-plugin/plugin.json comes first, those in hooks later
	if err != nil {
		t.Fatal(err)
	}
	p.write(".claude/skills/toold/hooks", "a file where the directory is wanted")
	if err := plan.Apply(); err == nil {
		t.Error("it was applied")
	}
	p.expectNo(".claude/skills/toold/.claude-plugin/plugin.json")
	if left, _ := Connected(p.StateDir); len(left) > 0 {
		t.Errorf("%v is connected", left)
	}
}

func TestTheDirectoriesOfTheEnvironmentCount(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	other := t.TempDir()
	p.Getenv = func(name string) string {
		return map[string]string{"CODEX_HOME": other + "/codex", "CLAUDE_CONFIG_DIR": other + "/claude", "XDG_CONFIG_HOME": other + "/config"}[name]
	}
	for agent, files := range map[string][]string{
		"codex": {"codex/config.toml", "codex/environments.toml"}, "claude": {"claude/skills/toold/hooks/register.js"}, "zed": {"config/zed/settings.json"},
	} {
		p.connect(agent)
		for _, f := range files {
			if _, err := os.Stat(filepath.Join(other, f)); err != nil {
				t.Error(err)
			}
		}
	}
}
