package connect

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toold/toold/internal/edit"
	"github.com/toold/toold/internal/must"
)

// own is a file of the user before an agent is connected.
func own(f File) string {
	return map[edit.Format]string{edit.JSON: "{\n  \"own\": 1 // mine\n}\n", edit.TOML: "own = 1 # mine\n", edit.YAML: "own: 1 # mine\n", "": "// mine\n"}[f.Format]
}

// files are the files of an agent, each with a text of the user's.
func (p person) files(a Agent) map[string]string {
	p.t.Helper()
	list := must.Get(a.files(p.Setup))(p.t)
	texts := map[string]string{}
	for _, f := range list {
		name := strings.TrimPrefix(f.Path, p.Home)
		texts[name] = own(f)
		p.write(name, texts[name])
	}
	return texts
}

func TestUndoRestoresTheFilesOfEachAgent(t *testing.T) {
	t.Parallel()
	for name, between := range map[string]func(p person, name, text string){
		"nothing":   func(person, string, string) {},
		"not begun": func(p person, name, text string) { p.overwrite(name, text) }, // it was killed before it wrote the file
	} {
		for _, a := range Agents() {
			p := newPerson(t)
			texts := p.files(a)
			p.connect(a.Name)
			for name, text := range texts {
				between(p, name, text)
			}
			p.Program, p.URL = "/opt/new/toold", "ws://127.0.0.1:7718"
			p.connect(a.Name)
			for _, u := range p.undo(a.Name) {
				if !u.Restored {
					t.Errorf("%s, %s: %+v", a.Name, name, u)
				}
			}
			for name, text := range texts {
				p.expect(name, text)
			}
			if list, err := Undo(p.StateDir, a.Name); list != nil || err != nil {
				t.Errorf("%s: a second time %+v, %v are undone", a.Name, list, err)
			}
		}
	}
}

// overwrite changes a file where it is, also behind a link.
func (p person) overwrite(name, text string) {
	p.t.Helper()
	must.Do(p.t, os.WriteFile(filepath.Join(p.Home, name), []byte(text), 0o640))
}

// The user's text is behind the link to the state directory, which Undo empties.
func TestUndoKeepsWhatTheUserWroteInPlaceOfAllOfIt(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	p.write(".codex/environments.toml", "default = \"box\"\n")
	p.connect("codex")
	const mine = "default = \"other\"\n\n[[environments]]\nid = \"other\"\nurl = \"ws://other\"\n"
	p.overwrite(".codex/environments.toml", mine)
	p.undo("codex")
	p.expect(".codex/environments.toml", mine)
}

func TestUndoRestoresWhatTheStateDirectoryLost(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	const mine = "default = \"box\"\n"
	at := p.write(".codex/environments.toml", mine)
	for _, again := range []bool{false, true} {
		p.connect("codex")
		kept := must.Get(os.Readlink(at))(t)
		must.Do(t, os.Remove(kept))
		if again {
			p.connect("codex")
		}
		p.undo("codex")
		p.expect(".codex/environments.toml", mine)
	}
}

func TestUndoRestoresTheFilesOfSeveralDirectories(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	for _, dir := range []string{"a", "b"} {
		p.Getenv = func(name string) string {
			return map[string]string{"CODEX_HOME": filepath.Join(p.Home, dir)}[name]
		}
		p.write(dir+"/environments.toml", "default = \""+dir+"\"\n")
		p.write(dir+"/config.toml", "model = \""+dir+"\"\n")
		p.connect("codex")
	}
	p.undo("codex")
	for _, dir := range []string{"a", "b"} {
		p.expect(dir+"/environments.toml", "default = \""+dir+"\"\n")
		p.expect(dir+"/config.toml", "model = \""+dir+"\"\n")
	}
}

const settings = ".claude/settings.json"

// Claude Code runs nothing when the program of a hook is missing.
func TestTheHookOfAToolThatMovedIsReplaced(t *testing.T) {
	t.Parallel()
	for _, agent := range []string{"claude", "letta"} {
		for _, before := range []string{"", "{}\n", "{\"hooks\": {\"PreToolUse\": []}}\n", "{\n  \"hooks\": {\n    \"PreToolUse\": [{\"matcher\": \"X\", \"hooks\": []}]\n  }\n}\n"} {
			for _, edited := range []bool{false, true} {
				p := newPerson(t)
				file := "." + agent + "/settings.json"
				if before != "" {
					p.write(file, before)
				}
				p.connect(agent)
				if edited {
					p.overwrite(file, strings.Replace(p.read(file), "{", "{\"model\": \"x\",", 1))
				}
				p.Program = "/usr/local/new/toold"
				p.connect(agent)
				if text := p.read(file); strings.Contains(text, "/opt/toold") || strings.Count(text, p.Program) != 1 {
					t.Errorf("%s: from %q there is %s", agent, before, text)
				}
				p.undo(agent)
				switch {
				case edited:
					if text := p.read(file); strings.Contains(text, "toold") || !strings.Contains(text, "\"model\": \"x\"") {
						t.Errorf("%s: undone there is %s", agent, text)
					}
				case before == "":
					p.expectNo(file)
				default:
					p.expect(file, before)
				}
			}
		}
	}
}

// A hook of the user's beside that of toold does not keep it there.
func TestUndoTakesTheHookOutFromBesideAnother(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	p.connect("claude")
	text := p.read(settings)
	at := strings.Index(text, "[") + 1
	p.overwrite(settings, text[:at]+`{"matcher": "mine"}, `+text[at:])
	p.undo("claude")
	if text := p.read(settings); strings.Contains(text, "toold") || !strings.Contains(text, "mine") {
		t.Errorf("there is %s", text)
	}
}

// What the user wrote into a file of toold's is put back when it was written over.
func TestUndoRestoresAnEditOfAWholeFileBetweenTwoChanges(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	const file = ".claude/skills/toold/hooks/register.js"
	p.connect("claude")
	p.overwrite(file, "// mine\n")
	p.connect("claude")
	p.undo("claude")
	p.expect(file, "// mine\n")
	p.expectNo(".claude/skills/toold/hooks/hooks.json")
}

// A manager of dotfiles moves a file and puts a link in its place.
func TestUndoFollowsALinkThatWasMadeSince(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	at := p.write(".gemini/settings.json", "{}\n")
	p.connect("gemini")
	p.write("dotfiles/gemini.json", p.read(".gemini/settings.json"))
	must.Do(t, os.Remove(at))
	must.Do(t, os.Symlink("../dotfiles/gemini.json", at))
	p.undo("gemini")
	p.expect("dotfiles/gemini.json", "{}\n")
	if to, err := os.Readlink(at); to != "../dotfiles/gemini.json" || err != nil {
		t.Errorf("the link is %q, %v", to, err)
	}
}

func TestUndoRemovesAFileThatWasMadeAgain(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	at := p.write(".gemini/settings.json", "{}\n")
	p.connect("gemini")
	must.Do(t, os.Remove(at))
	p.connect("gemini")
	p.undo("gemini")
	p.expectNo(".gemini/settings.json")
}

func TestAHookWhoseProgramIsMissingIsNamed(t *testing.T) {
	t.Parallel()
	for _, agent := range []string{"claude", "letta"} {
		p := newPerson(t)
		p.Program = p.write("it's here/toold", "")
		must.Do(t, os.Chmod(p.Program, 0o700))
		p.connect(agent)
		a, _ := Named(agent)
		if list := a.DeadHooks(p.Setup); len(list) > 0 {
			t.Errorf("%s: %v", agent, list)
		}
		must.Do(t, os.Remove(p.Program))
		if list := a.Warnings(p.Setup); len(list) != 1 || !strings.Contains(list[0], p.Program+", which is missing") {
			t.Errorf("%s: %v", agent, list)
		}
	}
}

func TestUndoKeepsTheModeThatTheUserHasSetSince(t *testing.T) {
	t.Parallel()
	for _, a := range Agents() {
		p := newPerson(t)
		list := must.Get(a.files(p.Setup))(t)
		p.files(a)
		for _, f := range list {
			must.Do(t, os.Chmod(f.Path, 0o644))
		}
		p.connect(a.Name)
		want := map[string]os.FileMode{}
		for _, f := range list {
			want[f.Path] = 0o600
			if f.Secret {
				want[f.Path] = 0o644 // the original was not in place
			} else if err := os.Chmod(f.Path, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		p.undo(a.Name)
		for path, mode := range want {
			if info, err := os.Stat(path); err != nil || info.Mode() != mode {
				t.Errorf("%s: %s: %v, %v; want %v", a.Name, path, info.Mode(), err, mode)
			}
		}
	}
}
