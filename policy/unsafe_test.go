package policy

import "testing"

// One letter means many things in git: only where it runs a program or changes a
// setting must a rule permit it.
func TestFlagsOfGitAreThoseOfTheirSubcommand(t *testing.T) {
	t.Parallel()
	p := rules(t, asking(), Rule{ID: "git", Action: Allow, Run: []string{"git **"}})
	for command, want := range map[string]Action{
		"git push -u origin topic": Allow, "git commit -C HEAD": Allow, "git commit -mfix": Allow, "git switch -c topic": Allow, "git add -u": Allow,
		"git stash -u": Allow, "git clean -fdx": Allow, "git cherry-pick -x abc": Allow, "git diff -C HEAD": Allow, "git --no-pager log -c": Allow,
		"git clone -u ./x a": Ask, "git clone -c a=b c": Ask, "git -c alias.x=!x x": Ask, "git -C .. push -u origin": Ask, "git rebase -x ./x": Ask,
		"git -u push": Ask, "git grep -O./x a": Ask, "git push --receive-pack=./x": Ask, "git fetch --upload-pack ./x": Ask, "git commit -c… x": Ask,
		"git --unknown push -c x": Ask, "git … -c x": Ask, "git diff --output=x": Ask, "git ls-remote -u ./x": Ask, "git archive --exec=./x": Ask,
	} {
		if d := p.Decide([]Effect{run(command)}); d.Action != want {
			t.Errorf("%s: %v by %s, want %v", command, d.Action, d.Rule, want)
		}
	}
}
