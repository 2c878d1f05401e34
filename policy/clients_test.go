package policy

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/toold/toold/internal/must"
)

func TestAClientsFileTightensForItsClientOnly(t *testing.T) {
	t.Parallel()
	open := Defaults{Allow, Allow, Allow, Allow, Ask, Allow, Allow, Allow, Deny}
	p := compile(t, File{Name: "user", Defaults: open, Clients: []Client{
		{Name: "cloud*", File: File{Name: "cloud", Defaults: Defaults{Allow, Allow, Deny, Allow, Ask, Allow, Allow, Allow, Deny}, Lines: map[string]int{"defaults.write": 2}, Commands: []Rule{
			{ID: "no-push", Action: Deny, Run: []string{"git push **"}},
			{ID: "builds", Action: Allow, Run: []string{"make **"}, Line: 4},
		}}},
		{Agent: "night-*", File: File{Name: "night", Headless: true, Defaults: open, Commands: []Rule{{ID: "no-sudo", Action: Ask, Run: []string{"sudo **"}}}}},
	}})
	for _, c := range []struct {
		client, agent string
		effect        Effect
		want          Action
		source        string
	}{
		{"local", "a", run("git push"), Allow, "user"},
		{"cloud-1", "a", run("git push"), Deny, "cloud"},
		{"cloud-1", "", write("/w/a"), Deny, "cloud:2"},
		{"local", "", write("/w/a"), Allow, "user"},
		{"local", "night-1", run("sudo x"), Deny, "night"},
		{"local", "", run("sudo x"), Allow, "user"},
		{"cloud", "night-1", run("git push"), Deny, "cloud"},
		{"", "", run("git push"), Allow, "user"},
	} {
		if d := p.For(c.client, c.agent).Decide([]Effect{c.effect}); d.Action != c.want || d.Source != c.source {
			t.Errorf("%s %s, %v: %v by %s, want %v by %s", c.client, c.agent, c.effect, d.Action, d.Source, c.want, c.source)
		}
	}
	if w := p.Warnings(); len(w) != 1 || !strings.HasPrefix(w[0], "cloud:4: rule builds has no effect") {
		t.Errorf("warnings: %q", w)
	}
}

func TestTheRulesForAnyoneAreThoseOfEveryClient(t *testing.T) {
	t.Parallel()
	p := compile(t, File{Name: "user", Defaults: asking(), Clients: []Client{
		{Name: "a", File: File{Name: "a.yaml", Defaults: asking(), Paths: []Rule{{ID: "no-a", Action: Deny, Paths: []string{"/w/a"}}}}},
		{Name: "b", File: File{Name: "b.yaml", Defaults: asking(), Paths: []Rule{{ID: "no-b", Action: Deny, Paths: []string{"/w/b"}}}}},
	}})
	for _, q := range []*Policy{p.ForAnyone(), p.For("a", "").ForAnyone()} {
		for path, want := range map[string]Action{"/w/a": Deny, "/w/b": Deny, "/w/c": Ask} {
			if d := q.Decide([]Effect{read(path)}); d.Action != want {
				t.Errorf("%s: %v, want %v", path, d.Action, want)
			}
		}
	}
	if d := p.Decide([]Effect{read("/w/a")}); d.Action != Ask {
		t.Errorf("the policy itself changed: %v by %s", d.Action, d.Rule)
	}
}

// Every token that makes calls has the role agent: "agent" holds for each of them, whatever its
// own name, and "agent NAME" for one.
func TestAFileForAgentsHoldsForEveryToken(t *testing.T) {
	t.Parallel()
	open := Defaults{Allow, Allow, Allow, Allow, Ask, Allow, Allow, Allow, Deny}
	for _, c := range []struct {
		name, client string
		want         Action
	}{
		{"agent", "agent", Deny},
		{"agent", "codex", Deny},
		{"agent", "", Deny},
		{"agent codex", "codex", Deny},
		{"agent codex", "claude", Allow},
		{"agent codex", "agent", Allow},
		{"agent agent", "agent", Deny},
		{"agent agent", "codex", Allow},
		{"agent cl*", "claude", Deny},
		{"codex", "codex", Deny},
		{"codex", "agent", Allow},
		{"*", "codex", Deny},
	} {
		p := compile(t, File{Name: "user", Defaults: open, Clients: []Client{
			{Name: c.name, File: File{Name: "own", Defaults: open, Commands: []Rule{{ID: "no-push", Action: Deny, Run: []string{"git push **"}}}}},
		}})
		if d := p.For(c.client, "").Decide([]Effect{run("git push")}); d.Action != c.want {
			t.Errorf("a file for %q and the client %q: %v, want %v", c.name, c.client, d.Action, c.want)
		}
	}
}

func TestAClientsFileNeverLoosens(t *testing.T) {
	must.Long(t)
	t.Parallel()
	r := rand.New(rand.NewPCG(7, 7))
	for range 300 {
		base, effects := randomFile(r), []Effect{randomEffect(r)}
		before := compile(t, base).Decide(effects)
		base.Clients = []Client{{Name: "a", File: randomFile(r)}}
		p := compile(t, base)
		tightens(t, before, p.For("a", "").Decide(effects), effects)
		if other := p.For("b", "").Decide(effects); other.Action != before.Action {
			t.Errorf("another client: %v, want %v", other.Action, before.Action)
		}
	}
}
