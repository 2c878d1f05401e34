package policy

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toold/toold/internal/must"
)

func TestTheAdministratorsRulesHoldBesideTheUsers(t *testing.T) {
	t.Parallel()
	o := place()
	o.Administrator = &File{
		Name: "/etc/toold/policy.yaml", Lines: map[string]int{"defaults.net": 3},
		Defaults: Defaults{Bash: Allow, Read: Allow, Write: Allow, Net: Deny, Unanalysable: Ask, UnknownRead: Allow, UnknownWrite: Allow, UnknownEnv: Allow},
		Commands: []Rule{
			{ID: "admin-no-push", Action: Deny, Run: []string{"git push **"}, Line: 5},
			{ID: "admin-tests", Action: Allow, Run: []string{"run-tests"}},
		},
	}
	p := must.Get(Compile(o, File{
		Name: "user", Defaults: Defaults{Bash: Ask, Net: Allow, Unanalysable: Ask},
		Commands: []Rule{{ID: "all-git", Action: Allow, Run: []string{"git **"}}},
	}))(t)
	for _, c := range []struct {
		effect Effect
		want   Action
		source string
	}{
		{run("git push"), Deny, "/etc/toold/policy.yaml:5"},
		{run("git pull"), Allow, "user"},
		{run("run-tests"), Allow, "/etc/toold/policy.yaml"},
		{run("other"), Ask, "user"},
		{Effect{Kind: Net, Host: "a.b"}, Deny, "/etc/toold/policy.yaml:3"},
	} {
		if d := p.Decide([]Effect{c.effect}); d.Action != c.want || d.Source != c.source {
			t.Errorf("%v: %v at %s, want %v at %s", c.effect, d.Action, d.Source, c.want, c.source)
		}
	}
}

func TestAWarningNamesTheDefaultThatHasNoEffect(t *testing.T) {
	t.Parallel()
	p := compile(t, File{Name: "user", Defaults: asking()}, File{
		Name: "ws", Lines: map[string]int{"defaults.bash": 2, "defaults.net": 3},
		Defaults: Defaults{Allow, Allow, Allow, Deny, Ask, Allow, Allow, Allow, Deny},
	})
	if w := p.Warnings(); len(w) != 1 || !strings.HasPrefix(w[0], "ws:2: defaults.bash: allow has no effect") {
		t.Errorf("warnings: %q", w)
	}
	if d := p.Decide([]Effect{{Kind: Net, Host: "a.b"}}); d.Action != Deny || d.Source != "ws:3" {
		t.Errorf("the default of the workspace: %+v", d)
	}
}

func TestTheShortestTimeToAnswerCounts(t *testing.T) {
	t.Parallel()
	user := File{Name: "user", AskTimeout: time.Minute}
	for _, c := range []struct{ further, want time.Duration }{{0, time.Minute}, {time.Hour, time.Minute}, {time.Second, time.Second}} {
		if got := compile(t, user, File{Name: "ws", AskTimeout: c.further}).AskTimeout(); got != c.want {
			t.Errorf("%v beside a minute: %v, want %v", c.further, got, c.want)
		}
	}
	if got := compile(t, File{Name: "user"}, File{Name: "ws", AskTimeout: time.Second}).AskTimeout(); got != time.Second {
		t.Errorf("only the workspace names a time: %v", got)
	}
}

// A file that can only tighten must not make an allowing rule cover a path that
// differs in case, nor take a path out of a denying one.
func TestFoldingCaseInAFurtherFileOnlyTightens(t *testing.T) {
	t.Parallel()
	user := File{Name: "user", Defaults: asking(), Paths: []Rule{
		{ID: "src", Action: Allow, Paths: []string{"/w/src/**"}, Except: []string{"/w/src/own"}},
		{ID: "secret", Action: Deny, Paths: []string{"/w/*.pem"}, Except: []string{"/w/public.pem"}},
	}}
	p := compile(t, user, File{Name: "ws", FoldCase: true, Defaults: Defaults{Allow, Allow, Allow, Allow, Ask, Allow, Allow, Allow, Deny}})
	for path, want := range map[string]Action{
		"/w/src/a": Allow, "/w/SRC/a": Ask, "/w/src/OWN": Ask,
		"/w/a.PEM": Deny, "/w/public.pem": Ask, "/w/PUBLIC.pem": Deny,
	} {
		if d := p.Decide([]Effect{read(path)}); d.Action != want {
			t.Errorf("%s: %v by %s, want %v", path, d.Action, d.Rule, want)
		}
	}
}

func TestADemandHoldsWhicheverRuleDecides(t *testing.T) {
	t.Parallel()
	list := []Rule{
		{ID: "push", Action: Ask, Always: true, Run: []string{"git push **"}},
		{ID: "git", Action: Ask, Run: []string{"git **"}},
		{ID: "test", Action: Allow, Run: []string{"go test **"}},
		{ID: "confined", Action: Allow, Profile: "read-only", Run: []string{"go test ./..."}},
		{ID: "build", Action: Allow, Profile: "workspace-write", Run: []string{"go build"}},
	}
	for range 2 {
		p := rules(t, asking(), list...)
		for _, c := range []struct {
			effects []Effect
			always  bool
			profile string
		}{
			{[]Effect{run("git push origin")}, true, ""},
			{[]Effect{run("unknown"), run("/usr/bin/git -C . push")}, true, ""},
			{[]Effect{run("git pull")}, false, ""},
			{[]Effect{run("go test ./...")}, false, "read-only"},
			{[]Effect{run("go test ./x")}, false, ""},
			{[]Effect{run("go build")}, false, "workspace-write"},
			{[]Effect{run("go build"), run("go test ./...")}, false, "read-only"},
		} {
			d := p.Decide(c.effects)
			if d.Always != c.always || d.Profile != c.profile {
				t.Errorf("%v: always %v, sandbox %q, want %v, %q", c.effects, d.Always, d.Profile, c.always, c.profile)
			}
		}
		slices.Reverse(list)
	}
}

func TestARuleIsHeldToItsExamples(t *testing.T) {
	t.Parallel()
	for _, action := range []Action{Deny, Ask, Allow} {
		for _, c := range []struct {
			match, not string
			want       string // of the error
		}{
			{"git push a", "git pull", ""},
			{"git pull", "git fetch", `example "git pull": the rule should match it`},
			{"git push", "git push a", `example "git push a": the rule should not match it`},
			{"git push; x", "x", `example "git push; x" is not one plain command`},
			{"git push", "x 'y", `example "x 'y" is not one plain command`},
		} {
			r := Rule{ID: "r", Action: action, Run: []string{"git push **"}, Match: []string{c.match}, NotMatch: []string{c.not}}
			_, err := Compile(place(), File{Name: "p.yaml", Defaults: asking(), Commands: []Rule{r}})
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, %q and %q: %v, want %q", action, c.match, c.not, err, c.want)
			}
		}
	}
}

func TestKeysWithoutMeaningAreRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule Rule
		want string
	}{
		{Rule{Action: Allow, Always: true}, "always: true has a meaning only where decision is ask"},
		{Rule{Action: Deny, Always: true}, "always: true has a meaning only where decision is ask"},
		{Rule{Action: Deny, Profile: "read-only"}, "nothing runs"},
		{Rule{Action: Allow, Profile: "danger-full-access"}, "a rule can only tighten"},
		{Rule{Action: Ask, PermitFlags: []string{"-o"}}, "only where decision is allow"},
		{Rule{Action: Deny, ForbidFlags: []string{"-o"}}, "only where decision is allow"},
		{Rule{Action: Ask, RequireFlags: []string{"-o"}}, "only where decision is allow"},
	} {
		c.rule.ID, c.rule.Run, c.rule.Line = "x", []string{"a"}, 4
		_, err := Compile(place(), File{Name: "p", Commands: []Rule{c.rule}})
		if err == nil || !strings.HasPrefix(err.Error(), `p:4: rule "x": `) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %s", c.rule, err, c.want)
		}
	}
}

func TestAFaultNamesItsPlaceAndWhatWasExpected(t *testing.T) {
	t.Parallel()
	for want, f := range map[string]File{
		`p: presets: unknown preset "x": expected shell-readonly or shell-workspace`: {Presets: []string{"x"}},
		`p: builtin.disable: no built-in rule has the id "x": expected one of `:      {Disable: []string{"x"}},
		`p: defaults.unanalysable: what cannot be analysed is never allowed`:         {Defaults: Defaults{Unanalysable: Allow}},
		`p:4: rule "builtin:x": an id must not begin with "builtin:"`:                {Net: []Rule{{ID: "builtin:x", Hosts: []string{"a"}, Line: 4}}},
		`p:4: rule "defaults.x": an id must not begin with`:                          {Net: []Rule{{ID: "defaults.x", Hosts: []string{"a"}, Line: 4}}},
		`p: rule "r": run is empty: the rule can never match`:                        {Commands: []Rule{{ID: "r"}}},
		`p: rule "r": match is empty: the rule can never match`:                      {Paths: []Rule{{ID: "r"}}},
		`p: rule "r": hosts is empty: the rule can never match`:                      {Net: []Rule{{ID: "r"}}},
		`p: rule "r": unknown operation "exec": expected read or write`:              {Paths: []Rule{{ID: "r", Paths: []string{"/"}, Ops: []Kind{Read, Exec}}}},
		`every rule needs an id`: {Net: []Rule{{Hosts: []string{"a"}}}},
	} {
		f.Name = "p"
		if _, err := Compile(place(), f); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func TestAnUnknownHomeLeavesTheOtherBuiltInRules(t *testing.T) {
	t.Parallel()
	p := must.Get(Compile(Options{Workspace: "/w"}, File{Name: "p", Defaults: asking()}))(t)
	if d := p.Decide([]Effect{read("/w/id_rsa")}); d.Rule != "builtin:secrets" {
		t.Errorf("%+v", d)
	}
}
