package policy

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestDenyWinsOverAskAndAllow(t *testing.T) {
	t.Parallel()
	all := []Rule{
		{ID: "a", Action: Allow, Run: []string{"git **"}},
		{ID: "b", Action: Ask, Run: []string{"git push **"}},
		{ID: "c", Action: Deny, Run: []string{"git push --force **"}},
	}
	for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}, {1, 2, 0}} {
		p := rules(t, asking(), all[order[0]], all[order[1]], all[order[2]])
		decides(t, p, map[string]Action{
			"git log": Allow, "git push": Ask, "git push --force": Deny, "git push origin --force": Deny,
		})
	}
}

func TestTheStrictestEffectDecidesTheCallWhereverItIs(t *testing.T) {
	t.Parallel()
	p := rules(t, asking(), Rule{ID: "ls", Action: Allow, Run: []string{"ls"}},
		Rule{ID: "cp", Action: Ask, Run: []string{"cp **"}}, Rule{ID: "rm", Action: Deny, Run: []string{"rm **"}})
	const most = 40
	for _, c := range []struct {
		command string
		want    Action
	}{{"cp x y", Ask}, {"rm x", Deny}} {
		for before := range most {
			effects := slices.Repeat([]Effect{run("ls")}, most)
			effects[before] = run(c.command)
			d := p.Decide(effects)
			program, _, _ := strings.Cut(c.command, " ")
			if d.Action != c.want || d.Rule != program || d.Effect.Argv[0].Text != program {
				t.Errorf("%s behind %d effects: %+v", c.command, before, d)
			}
		}
	}
	if d := p.Decide([]Effect{run("cp x y"), run("ls"), run("rm x")}); d.Action != Deny {
		t.Errorf("%+v", d)
	}
}

func TestACallWithoutEffectsIsDenied(t *testing.T) {
	t.Parallel()
	p := rules(t, Defaults{Allow, Allow, Allow, Allow, Ask, Allow, Allow, Allow, Deny})
	if d := p.Decide(nil); d.Action != Deny || d.Reason == "" {
		t.Errorf("%+v", d)
	}
}

func TestWhatCannotBeAnalysedIsNeverAllowed(t *testing.T) {
	t.Parallel()
	open := Defaults{Allow, Allow, Allow, Allow, Allow, Allow, Allow, Allow, Deny}
	if _, err := Compile(place(), File{Name: "p.yaml", Defaults: open}); err == nil || !strings.Contains(err.Error(), "never allowed") {
		t.Errorf("unanalysable: allow is accepted: %v", err)
	}
	open.Unanalysable = Ask
	p := rules(t, open, Rule{ID: "everything", Action: Allow, Run: []string{"**"}})
	for _, e := range []Effect{
		{Kind: Opaque, Why: "it is computed"}, {}, {Kind: Exec}, {Kind: Exec, Argv: words("x…")}, run("python3 -c x"), run("bash"), run("node -e x"), run("awk BEGIN{}"),
	} {
		d := p.Decide([]Effect{run("ls"), e})
		if (e.Kind == Opaque || len(e.Argv) == 0 || e.Argv[0].Dynamic) && d.Action != Ask {
			t.Errorf("%v: %v", e, d.Action)
		}
	}
	p = rules(t, open)
	for _, command := range []string{"python3 -c x", "bash", "sh -s", "node -e x", "perl -pe x", "awk x", "tar cf a b --checkpoint-action=exec=sh", "git -c alias.x=!sh x"} {
		if d := p.Decide([]Effect{run(command)}); d.Action != Ask || d.Rule != "defaults.unanalysable" {
			t.Errorf("%s: %v by %s", command, d.Action, d.Rule)
		}
	}
}

func TestHeadlessTurnsAskIntoDeny(t *testing.T) {
	t.Parallel()
	p := compile(t, File{Headless: true, Defaults: asking()})
	d := p.Decide([]Effect{run("unknown")})
	if d.Action != Deny || !strings.Contains(d.Reason, "Nobody can be asked") {
		t.Errorf("%+v", d)
	}
}

func TestADecisionSaysWhoWhereWhyAndWhatNext(t *testing.T) {
	t.Parallel()
	commands := []Rule{
		{ID: "push", Action: Deny, Run: []string{"git push **"}, Reason: "releases are made by people", Line: 7},
		{ID: "drop", Action: Ask, Run: []string{"git stash drop **"}, Line: 8},
		{ID: "vet", Action: Allow, Run: []string{"go vet **"}, Line: 9},
	}
	p := compile(t, File{Name: "p.yaml", Lines: map[string]int{"env.unknown": 3}, Defaults: asking(), Commands: commands})
	strict := compile(t, File{Name: "p.yaml"})
	for _, c := range []struct {
		effect               Effect
		rule, source, reason string
	}{
		{run("go vet ./..."), "vet", "p.yaml:9", "It may run `go vet ./...`."},
		{run("git stash drop"), "drop", "p.yaml:8", "It would run `git stash drop`. A person decides."},
		{run("echo `id`"), "defaults.bash", "p.yaml", "No rule allows to run `` echo `id` ``. A person decides."},
		{Effect{Kind: Env, Name: "PATH"}, "env.dangerous", "p.yaml:3", "No rule allows to set PATH. A person decides."},
		{
			Effect{Kind: Opaque, Why: "a\x1b[2J\nb\x7f"},
			"defaults.unanalysable", "p.yaml",
			"The command cannot be analysed, because a␣[2J␣b␣. A person decides.",
		},
		{
			Effect{Kind: Opaque, Why: strings.Repeat("é", 120)},
			"defaults.unanalysable", "p.yaml",
			"The command cannot be analysed, because " + strings.Repeat("é", 120) + ". A person decides.",
		},
		{
			Effect{Kind: Opaque, Why: strings.Repeat("é", 121)},
			"defaults.unanalysable", "p.yaml",
			"The command cannot be analysed, because " + strings.Repeat("é", 120) + "…. A person decides.",
		},
		{
			run("git push origin"), "push", "p.yaml:7",
			"It must not run `git push origin`: releases are made by people. Do not try another spelling: ask the user to do it, or leave it out.",
		},
		{
			run("go test"), "defaults.bash", "p.yaml", "No rule allows to run `go test`. A person decides.",
		},
		{
			Effect{Kind: Opaque, Why: "it is computed"},
			"defaults.unanalysable", "p.yaml",
			"The command cannot be analysed, because it is computed. A person decides.",
		},
		{
			write("/w/.git/config"), "builtin:git-config", "built-in",
			"It must not write /w/.git/config: git runs programs that are named there. Do not try another spelling: ask the user to do it, or leave it out.",
		},
	} {
		d := p.Decide([]Effect{c.effect})
		if d.Rule != c.rule || d.Source != c.source || d.Reason != c.reason {
			t.Errorf("%v:\n got %s | %s | %s\nwant %s | %s | %s", c.effect, d.Rule, d.Source, d.Reason, c.rule, c.source, c.reason)
		}
	}
	for _, c := range []struct {
		effect Effect
		reason string
	}{
		{run("x"), "No rule allows to run `x`. Use what the policy allows, or ask the user to add a rule."},
		{Effect{Kind: Opaque, Why: "it is computed"}, "The command cannot be analysed, because it is computed. Write the command in plain steps."},
	} {
		if d := strict.Decide([]Effect{c.effect}); d.Action != Deny || d.Reason != c.reason {
			t.Errorf("%v: %v\n got %s\nwant %s", c.effect, d.Action, d.Reason, c.reason)
		}
	}
}

func TestSuspectedEffectsNeedNoAllowingRule(t *testing.T) {
	t.Parallel()
	p := rules(t, asking(), Rule{ID: "ls", Action: Allow, Run: []string{"ls"}}, Rule{ID: "rm", Action: Deny, Run: []string{"rm **"}})
	for command, want := range map[string]Action{"nonsense": Allow, "rm x": Deny} {
		e := run(command)
		e.Possible = true
		if d := p.Decide([]Effect{run("ls"), e}); d.Action != want {
			t.Errorf("%s: %v, want %v", command, d.Action, want)
		}
	}
}

func TestAnotherFileCanOnlyTighten(t *testing.T) {
	t.Parallel()
	open := Defaults{Allow, Allow, Allow, Allow, Ask, Allow, Allow, Allow, Deny}
	user := File{Name: "user", Defaults: asking(), Presets: []string{"shell-readonly"}}
	p := compile(t, user, File{
		Name: "ws", Defaults: open, Presets: []string{"shell-workspace"}, Env: []string{"PATH"}, Disable: []string{"builtin:secrets"},
		Commands: []Rule{{ID: "a", Action: Allow, Run: []string{"**"}}, {ID: "d", Action: Deny, Run: []string{"ls"}}},
		Paths:    []Rule{{ID: "b", Action: Allow, Paths: []string{"/**"}}},
		Net:      []Rule{{ID: "c", Action: Allow, Hosts: []string{"a.b"}}},
	})
	decidesEach(t, p, []decided{
		{run("curl x"), Ask},
		{run("mkdir x"), Ask},
		{run("ls"), Deny},
		{run("cat x"), Allow},
		{read("/x"), Ask},
		{read("/home/u/.ssh/id"), Deny},
		{Effect{Kind: Net, Host: "a.b"}, Ask},
		{Effect{Kind: Env, Name: "PATH"}, Ask},
	})
	if len(p.Warnings()) != 6 { // one for each thing left out
		t.Errorf("warnings: %q", p.Warnings())
	}
}

func TestVariables(t *testing.T) {
	t.Parallel()
	d := asking()
	d.UnknownEnv = Allow
	p := compile(t, File{Defaults: d, Env: []string{"APP_*", "GIT_*", "CC"}})
	for name, want := range map[string]Action{
		"LANG": Allow, "LC_ALL": Allow, "CI": Allow, "APP_MODE": Allow, "SOMETHING": Allow, "CC": Allow,
		"PATH": Ask, "LD_PRELOAD": Ask, "BASH_ENV": Ask, "GIT_SSH_COMMAND": Ask, "NODE_OPTIONS": Ask, "PAGER": Ask, "GOFLAGS": Ask,
		"MY_TOKEN": Ask, "https_proxy": Ask, "HOME": Ask, "": Ask, "PYTHONPATH": Ask, "PS4": Ask,
	} {
		if got := p.Decide([]Effect{{Kind: Env, Name: name}}); got.Action != want {
			t.Errorf("%q: %v by %s, want %v", name, got.Action, got.Rule, want)
		}
	}
}

func TestHosts(t *testing.T) {
	t.Parallel()
	p := compile(t, File{Defaults: asking(), Net: []Rule{
		{ID: "api", Action: Allow, Hosts: []string{"API.example.org", "*.docs.example.org"}, Ports: []int{443}, Schemes: []string{"https"}},
		{ID: "metadata", Action: Deny, Hosts: []string{"169.254.169.254"}, Ports: []int{80}},
	}})
	for _, c := range []struct {
		host, scheme string
		port         int
		want         Action
	}{
		{"api.example.org", "https", 443, Allow},
		{"x.docs.example.org", "https", 443, Allow},
		{"docs.example.org", "https", 443, Ask},
		{"evildocs.example.org", "https", 443, Ask},
		{"api.example.org.evil", "https", 443, Ask},
		{"api.example.org", "http", 443, Ask},
		{"api.example.org", "", 443, Ask},
		{"api.example.org", "https", 8443, Ask},
		{"api.example.org", "https", 0, Ask},
		{"api.example.org", "http\u017f", 443, Ask},
		{"", "https", 443, Ask},
		{"169.254.169.254", "http", 80, Deny},
		{"169.254.169.254", "", 0, Deny},
	} {
		e := Effect{Kind: Net, Host: c.host, Scheme: c.scheme, Port: c.port}
		if d := p.Decide([]Effect{e}); d.Action != c.want {
			t.Errorf("%+v: %v, want %v", c, d.Action, c.want)
		}
	}
}

func TestAHostInARuleIsOneInAnySpelling(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ written, host string }{
		{"Example.COM", "example.com"},
		{"example.com.", "example.com"},
		{"*.Example.com.", "a.example.com"},
		{"[::1]", "::1"},
		{"::1", "::1"},
		{"0:0:0:0:0:0:0:1", "::1"},
		{"2001:DB8::0:1", "2001:db8::1"},
		{"::ffff:127.0.0.1", "127.0.0.1"},
		{"my_service", "my_service"},
		{"xn--bcher-kva.example", "xn--bcher-kva.example"},
	} {
		p := compile(t, File{Defaults: Defaults{Net: Allow}, Net: []Rule{{ID: "no", Action: Deny, Hosts: []string{c.written}}}})
		if d := p.Decide([]Effect{{Kind: Net, Host: c.host}}); d.Action != Deny {
			t.Errorf("%s does not deny %s: %v", c.written, c.host, d.Action)
		}
		if d := p.Decide([]Effect{{Kind: Net}}); d.Action != Ask || !strings.Contains(d.Reason, `contact an unknown host, which may be what rule "no" denies`) {
			t.Errorf("an unknown host: %v: %s", d.Action, d.Reason)
		}
	}
	// No effect has such a host, so the rule could never match.
	for _, host := range []string{"0x7f.1", "127.1", "2130706433", "example.com:80", "[::1]:80", "u@example.com", "bücher.example", "\u212a.example", "*.\u017f.example", "https://example.com", "[example.com]", "fe80::1%eth0", "*.", "*.127.0.0.1:80"} {
		_, err := Compile(Options{Workspace: "/w"}, File{Name: "p.yaml", Net: []Rule{{ID: "no", Action: Deny, Hosts: []string{host}}}})
		if err == nil {
			t.Errorf("a rule for %q, which matches nothing, compiles", host)
		}
	}
}

func TestTheNamesOfEffectsAndActionsAreReadBack(t *testing.T) {
	t.Parallel()
	for kind := Opaque; kind <= Env; kind++ {
		text, err := kind.MarshalText()
		var got Kind
		if err := errors.Join(err, got.UnmarshalText(text)); err != nil || got != kind {
			t.Errorf("%d is %q, which is %d, %v", kind, text, got, err)
		}
	}
	for action := Deny; action <= Allow; action++ {
		text, err := action.MarshalText()
		var got Action
		if err := errors.Join(err, got.UnmarshalText(text)); err != nil || got != action {
			t.Errorf("%d is %q, which is %d, %v", action, text, got, err)
		}
	}
	kind, action := Exec, Allow
	if kind.UnmarshalText([]byte("Read")) == nil || action.UnmarshalText([]byte("yes")) == nil || action != Deny {
		t.Errorf("unknown names are %v and %v", kind, action)
	}
}
