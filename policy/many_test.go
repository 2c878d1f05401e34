package policy

import (
	"testing"

	"github.com/toold/toold/internal/must"
)

// many is a word that may be any number of words, the first of which begins so.
func many(begins string) Word { return Word{Text: begins, Dynamic: true, Many: true} }

// A rule that denies matches when some number of words in the place of such a word does; a
// rule that allows only when any number does.
func TestARuleHoldsForAnyNumberOfWords(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		action Action
		rule   string
		argv   []Word
		want   bool
	}{
		{Deny, "git remote add origin **", []Word{{Text: "git"}, {Text: "remote"}, many("")}, true},
		{Deny, "git remote add origin x", []Word{{Text: "git"}, many("remo")}, true},
		{Deny, "git push **", []Word{{Text: "git"}, {Text: "-C"}, many(""), {Text: "status"}}, true},
		{Deny, "git push **", []Word{{Text: "git"}, {Text: "status"}, many("")}, false},
		{Deny, "rm -rf **", []Word{{Text: "rm"}, many("a")}, true},
		{Deny, "rm x", []Word{{Text: "rm"}, {Text: "x"}, many("")}, true},
		{Deny, "rm x", []Word{{Text: "rm"}, many(""), {Text: "x"}}, true},
		{Deny, "rm x", []Word{{Text: "rm"}, {Text: "x"}, many(""), {Text: "z"}}, false},
		{Deny, "rm x", []Word{{Text: "rm"}, {Dynamic: true}, {Text: "x"}}, true},
		{Deny, "kubectl delete pod prod", []Word{{Text: "kubectl"}, {Text: "delete"}, {Text: "-n"}, many("a")}, true},
		{Deny, "kill <int>", []Word{{Text: "kill"}, {Text: "12", Dynamic: true}}, true},
		{Allow, "p **", []Word{{Text: "p"}, many("")}, true},
		{Allow, "p x **", []Word{{Text: "p"}, {Text: "x"}, many("a")}, true},
		{Allow, "p *", []Word{{Text: "p"}, many("a")}, false},
		{Allow, "p x", []Word{{Text: "p"}, {Text: "x"}, many("")}, false},
		{Allow, "kubectl -n dev get **", []Word{{Text: "kubectl"}, {Text: "-n"}, {Text: "dev"}, {Text: "get"}, many("a")}, false},
		{Allow, "kubectl -n dev get **", []Word{{Text: "kubectl"}, {Text: "-n"}, {Text: "dev"}, {Text: "get"}, {Text: "a", Dynamic: true}}, true},
		{Allow, "git log **", []Word{{Text: "git"}, {Text: "log"}, {Text: "--since"}, many("1")}, false},
		{Allow, "git log **", []Word{{Text: "git"}, {Text: "log"}, {Text: "--since"}, {Text: "1", Dynamic: true}}, true},
	} {
		defaults := Defaults{Bash: Allow, Read: Allow, Write: Allow, Net: Allow, UnknownRead: Allow, UnknownWrite: Allow, UnknownEnv: Allow}
		if c.action == Allow {
			defaults.Bash = Ask
		}
		p := must.Get(Compile(Options{Workspace: "/w"}, File{Name: "f", Defaults: defaults, Commands: []Rule{{ID: "r", Action: c.action, Run: []string{c.rule}}}}))(t)
		e := Effect{Kind: Exec, Argv: c.argv, Dirs: []string{"/w"}}
		if d := p.Decide([]Effect{e}); (d.Rule == "r") != c.want {
			t.Errorf("%v %q, %s: %v by %s", c.action, c.rule, e, d.Action, d.Rule)
		}
	}
}

// What a shell is given after -c has effects of its own; it is searched for commands only
// where it was not followed.
func TestATextForAShellIsSearchedWhereItIsNotFollowed(t *testing.T) {
	t.Parallel()
	p := rules(t, Defaults{Bash: Allow}, Rule{ID: "r", Action: Deny, Run: []string{"git push **"}})
	text := Word{Text: "echo git push"}
	for command, want := range map[string]bool{"bash -c": false, "timeout 5 sh -c": false, "bash -lc": false, "bash -ic": true, "flock x bash -c": true, "flock x -c": true, "sudo sh -c": true} {
		e := Effect{Kind: Exec, Argv: append(words(command), text), Dirs: []string{"/w"}}
		if d := p.Decide([]Effect{e}); (d.Rule == "r") != want {
			t.Errorf("%s: %v by %s", e, d.Action, d.Rule)
		}
	}
}
