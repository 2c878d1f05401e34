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
	for command, want := range cases(t, "operands.txt") {
		if got := shown(describe(words(command))); got != want {
			t.Errorf("%s: %s, want %s", command, got, want)
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
