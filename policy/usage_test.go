package policy

import (
	_ "embed"
	"strings"
	"testing"
)

//go:embed testdata/presets-allow.txt
var presetsAllow string

//go:embed testdata/presets-ask.txt
var presetsAsk string

func TestPresetsCoverEverydayCommands(t *testing.T) {
	t.Parallel()
	p := compile(t, File{Defaults: asking(), Presets: []string{presetReadOnly, presetWorkspace}})
	decidesAll(t, p, Allow, lines(presetsAllow)...)
}

func TestPresetsDoNotCoverWhatRunsOrWritesElsewhere(t *testing.T) {
	t.Parallel()
	p := compile(t, File{Defaults: asking(), Presets: []string{presetReadOnly, presetWorkspace}})
	decidesAll(t, p, Ask, lines(presetsAsk)...)
}

func TestReadOnlyPresetDoesNotWrite(t *testing.T) {
	t.Parallel()
	p := compile(t, File{Defaults: asking(), Presets: []string{presetReadOnly}})
	decidesAll(t, p, Ask, "mkdir a", "rm a", "cp a b", "tee a", "sed -i s/a/b/ a", "sed -ni p a", "sort -o b a", "uniq a b", "touch a", "chmod 644 a")
}

// shown renders operands for comparison: r and w for read and write, n for net,
// + for a tree, @ for a link itself.
func shown(u usage) string {
	var out []string
	for _, o := range u.Operands {
		s := map[Kind]string{Read: "r", Write: "w", Net: "n"}[o.Kind]
		if o.Tree {
			s += "+"
		}
		if o.Link {
			s += "@"
		}
		s += ":" + o.Word.Text
		if o.Word.Dynamic {
			s += "…"
		}
		out = append(out, s)
	}
	return strings.Join(out, " ")
}

func TestOperandsAreDescribed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ command, want string }{
		{"cat a b", "r:a r:b"},
		{"cat -- -a", "r:-a"},
		{"head -n 5 a", "r:a"},
		{"head -n5 a", "r:a"},
		{"grep x a", "r:a"},
		{"grep -e x a", "r:a"},
		{"grep -f p a", "r:p r:a"},
		{"grep -fp a", "r:p r:a"},
		{"grep --file=p a", "r:p r:a"},
		{"grep --fil p a", "r:p r:a"},
		{"grep -r x", "r+:."},
		{"grep -R x d", "r+:d r:…"},
		{"rg x", "r+:."},
		{"sort -o b a", "w:b r:a"},
		{"sort -ob a", "w:b r:a"},
		{"uniq a b", "r:a w:b"},
		{"cp a b", "r:a w:b w:b/a"},
		{"cp -r a/b c", "r+:a/b w:c w+:c/b"},
		{"cp -t d a", "w+:d r:a"},
		{"cp a/. b", "r:a/. w:b w+:b"},
		{"mv a b", "r+@:a w+@:a w:b w:b/a"},
		{"rm -rf a", "w+@:a"},
		{"ln -s a b", "r+:./a r+:b/a w+:./a w+:b/a w:b w:b/a"},
		{"tee a", "w:a"},
		{"chmod -R 755 a", "w+:a"},
		{"sed -i s/a/b/ a", "r:a w:a w:a"},
		{"sed -i.bak s/a/b/ a", "r:a w:a w:a.bak"},
		{"sed -n -e p a", "r:a"},
		{"find a b -name x", "r+:a r+:b"},
		{"find -name x", "r+:."},
		{"find a -delete", "r+:a w+:a"},
		{"find a -fprint b", "r+:a w:b"},
		{"git show HEAD:a", "r:HEAD:a r:a"},
		{"git diff -- a", "r:a"},
		{"curl -o a http://h/", "w:a n:http://h/"},
		{"curl -d @a http://h/", "r:a n:http://h/"},
		{"curl -sT a http://h/", "r:a n:http://h/"},
		{"git clone https://h/x", "n:https://h/x w+:x"},
		{"git clone https://h/.vscode.git", "n:https://h/.vscode.git w+:.vscode"},
		{"git clone a b/c", "r+:a r+:b/c w+:b/c"},
		{"git mv a .envrc", "r+@:a w+@:a w:.envrc w:.envrc/a"},
		{"git clone git@h:y/x.git", "n:git@h:y/x.git w+:x"},
		{"test -f a", "r:a"},
	} {
		if got := shown(describe(words(c.command))); got != c.want {
			t.Errorf("%s: %s, want %s", c.command, got, c.want)
		}
	}
}

func FuzzDescribe(f *testing.F) {
	f.Add("grep -rn x .")
	f.Add("sed -i s/a/b/ a")
	f.Add("npm --x y ci -ihttps://h/ a@b:c")
	f.Add("tar -C a czf b -- c")
	f.Add("curl -o a -d @b http://h/")
	p := compile(f, File{Defaults: asking(), Presets: []string{presetReadOnly, presetWorkspace}})
	f.Fuzz(func(t *testing.T, command string) {
		argv := words(command)
		describe(argv)
		suspects(argv)
		p.Decide([]Effect{{Kind: Exec, Argv: argv}})
		// A word that could be anything never turns a question into consent.
		if len(argv) > 0 && p.Decide([]Effect{{Kind: Exec, Argv: argv}}).Action != Allow {
			more := append(argv, Word{Dynamic: true})
			if d := p.Decide([]Effect{{Kind: Exec, Argv: more}}); d.Action == Allow && describe(argv).Known && argv[0].Text == "rm" {
				t.Errorf("%s is allowed with an unknown word", command)
			}
		}
	})
}
