package check_test

import (
	"strings"
	"testing"

	"github.com/toold/toold/policy"
	"github.com/toold/toold/policy/check"
)

func TestAnOfferLetsTheCallRunAndSaysWhatElse(t *testing.T) {
	t.Parallel()
	j := judge(t, place(), policy.File{Name: "p.yaml", Defaults: asking(), Commands: []policy.Rule{
		{ID: "push", Action: policy.Ask, Run: []string{"git push **"}},
		{ID: "release", Action: policy.Ask, Always: true, Run: []string{"tool release **"}},
		{ID: "never", Action: policy.Deny, Run: []string{"tool wipe **"}},
	}})
	h := recorded("+ npm run lint", "+ npm run lint --fix", "- npm run lint --all", "+ npm run build")
	for _, c := range []struct {
		commands []string
		want     string // scope and changes of each offer
	}{
		{[]string{"npm run lint"}, `command: ["npm run lint"] | prefix: ["npm run lint **"]`},
		{[]string{"make build"}, `command: ["make build"]`},
		{[]string{"git push origin main"}, `command: ["git push origin main"] ["git push origin main"] | prefix: ["git push origin **"] ["git push origin **"]`},
		{[]string{"npm run lint", "go vet ./..."}, `command: ["npm run lint"] ["go vet ./..."] | prefix: ["npm run lint **"] ["go vet **"]`},
		{[]string{"tool release x"}, ``},
		{[]string{"tool x", "tool wipe y"}, ``},
		{[]string{"tool x", "python3 -c print(1)"}, ``},
	} {
		var got []string
		for _, o := range j.Offers(runs(c.commands...), h) {
			text := o.Scope + ":"
			for _, ch := range o.Changes {
				list := append(append([]string{}, ch.Rule.Run...), ch.Texts...)
				text += ` ["` + strings.Join(list, `", "`) + `"]`
			}
			got = append(got, text)
			next, err := j.With(o.Changes...)
			if err != nil || next.Decide(runs(c.commands...)).Action != policy.Allow {
				t.Errorf("%v: %s does not let it run: %v", c.commands, text, err)
			}
			for _, not := range o.Not {
				if next.Decide(runs(not)).Action == policy.Allow {
					t.Errorf("%v: %s allows %s, and says that it does not", c.commands, text, not)
				}
			}
		}
		if text := strings.Join(got, " | "); text != c.want {
			t.Errorf("%v:\n got %s\nwant %s", c.commands, text, c.want)
		}
	}
	offers := j.Offers(runs("npm run lint"), h)
	texts := func(list []check.Past) (all []string) {
		for _, p := range list {
			all = append(all, p.Text)
		}
		return all
	}
	wide := offers[1]
	if a, r := texts(wide.Allows), texts(wide.Refused); strings.Join(a, "|") != "npm run lint|npm run lint --fix" || strings.Join(r, "|") != "npm run lint --all" || len(wide.Not) == 0 {
		t.Errorf("%v, %v, %v", a, r, wide.Not)
	}
}

func TestARuleOfOnesOwnMustLetTheCallRun(t *testing.T) {
	t.Parallel()
	j := judge(t, place(), policy.File{Name: "p.yaml", Defaults: asking()})
	if o, err := j.Offer("npm run *", runs("npm run lint", "npm run test"), &check.History{}); err != nil || len(o.Changes) != 1 {
		t.Errorf("%+v, %v", o, err)
	}
	for _, pattern := range []string{"npm test", "npm run lint", "'", "npm run {lint", ""} {
		if o, err := j.Offer(pattern, runs("npm run lint", "npm run test"), &check.History{}); err == nil && pattern != "" {
			t.Errorf("%q: %+v", pattern, o.Changes)
		}
	}
}

// What asks is a rule alone, and everything else is allowed: an exception that names more than
// the command is not offered as one for the command.
func TestAnExceptionForACommandNamesNoOther(t *testing.T) {
	t.Parallel()
	j := judge(t, place(), policy.File{Name: "p.yaml", Defaults: policy.Defaults{Bash: policy.Allow}, Commands: []policy.Rule{
		{ID: "push", Action: policy.Ask, Run: []string{"git push **"}},
	}})
	if offers := j.Offers(runs("git push origin main"), &check.History{}); len(offers) == 0 {
		t.Fatal("nothing is offered for a command that a pattern has word for word")
	}
	for _, command := range []string{"git push origin *", "git push origin {a,b}", "git push --repo={a,b}"} {
		for _, o := range j.Offers(runs(command), &check.History{}) {
			t.Errorf("%s: %s is offered: %q", command, o.Scope, o.Changes[0].Texts)
		}
	}
}
