package policy

import (
	"strings"
	"testing"

	"github.com/google/shlex"

	"github.com/toold/toold/internal/must"
)

func TestAWildcardNamesNoCode(t *testing.T) {
	t.Parallel()
	p := rules(t, asking(), Rule{ID: "all", Action: Allow, Run: []string{
		"git **", "awk **", "gawk -f ./a.awk **", "gawk -F: -f ./a.awk **", "sed -n **", "sed -e 's/a/b/w x' **", "sed 's/a/b/w x' *", "tar **", "less **",
	}})
	for command, want := range map[string]Action{
		"awk '{print $1}' x": Allow, "awk -F: '{print $1}' x": Allow, "awk 'BEGIN{system(\"x\")}'": Ask, "awk -f x": Ask, "awk '{print > \"x\"}' y": Ask,
		"gawk -f ./a.awk x": Allow, "gawk -F: -f ./a.awk x": Allow, "gawk -f ./a.awk -f ./b.awk": Ask, "gawk -f ./a.awk …": Ask,
		"sed -n 1p x": Allow, "sed -n 'w y' x": Ask, "sed -n '1e id' x": Ask, "sed -e 's/a/b/w x' y": Allow, "sed -e 's/a/b/w x' -e 'w z' y": Ask, "sed 's/a/b/w x' y": Allow,
		"tar xf x": Allow, "tar xPf x": Ask, "tar cIf id x": Ask, "less x": Allow, "less +!id x": Ask,
		"git log": Allow, "git bisect start": Allow, "git bisect run x": Ask, "git submodule foreach x": Ask, "git -C x bisect run x": Ask, "git filter-branch x": Ask,
		"git config --get a.b": Allow, "git config --list": Allow, "git config user.name x": Allow, "git config --global user.email x": Allow, "git config pull.rebase true": Allow,
		"git config core.pager x": Ask, "git config set core.pager x": Ask, "git config --add alias.x !y": Ask, "git config -e": Ask, "git config -f x a.b c": Ask, "git config merge.x.driver y": Ask,
		"git config init.templateDir x": Ask, "git config user.name": Allow, "git archive -o x HEAD": Ask, "git push -o ci.skip": Allow, "git ls-files -o": Allow, "git grep -o x": Allow,
	} {
		fields := must.Get(shlex.Split(command))(t)
		e := run("")
		for _, f := range fields {
			text, dynamic := strings.CutSuffix(f, "…")
			e.Argv = append(e.Argv, Word{Text: text, Dynamic: dynamic})
		}
		if d := p.Decide([]Effect{e}); d.Action != want {
			t.Errorf("%s: %v by %s, want %v", command, d.Action, d.Rule, want)
		}
	}
}

func TestNamesThatAreReadFromAFileAreNotKnown(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"wc --files0-from=x", "du --files0-from x", "sort --files0-f=x"} {
		unknown := false
		for _, o := range describe(words(command)).Operands {
			unknown = unknown || o.Kind == Read && o.Word.Dynamic
		}
		if !unknown {
			t.Errorf("%s: %v", command, describe(words(command)).Operands)
		}
	}
}
