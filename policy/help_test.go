package policy

import (
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/shell/programs"
)

// place is the machine the tests speak of. It does not exist.
func place() Options {
	return Options{Workspace: "/w", Home: "/home/u", Tmp: "/tmp", Protected: []string{"/home/u/.config/toold"}}
}

// words makes a command of literal words; … at the end of a word says that the
// rest is known only at run time.
func words(s string) []Word {
	var out []Word
	for _, f := range strings.Fields(s) {
		text, dynamic := strings.CutSuffix(f, "…")
		out = append(out, Word{Text: text, Dynamic: dynamic})
	}
	return out
}

// run is the effect of a command in the workspace.
func run(s string) Effect { return Effect{Kind: Exec, Argv: words(s), Dirs: []string{"/w"}} }

// read and write are effects on a path without links.
func read(path string) Effect  { return Effect{Kind: Read, Path: path, Canonical: path} }
func write(path string) Effect { return Effect{Kind: Write, Path: path, Canonical: path} }

// tree makes an effect one on everything below the path as well.
func tree(e Effect) Effect { e.Tree = true; return e }

// asking are the defaults of a file that says nothing.
func asking() Defaults { return Defaults{Ask, Ask, Ask, Ask, Ask, Ask, Ask, Ask, Deny} }

// compile compiles a file that must be right.
func compile(t testing.TB, f File, further ...File) *Policy {
	t.Helper()
	p := must.Get(Compile(place(), f, further...))(t)
	return p
}

// rules makes a policy of command rules on the given defaults.
func rules(t testing.TB, d Defaults, r ...Rule) *Policy {
	t.Helper()
	return compile(t, File{Name: "p.yaml", Defaults: d, Commands: r})
}

// decides checks what a policy decides on commands in the workspace.
func decides(t *testing.T, p *Policy, commands map[string]Action) {
	t.Helper()
	for command, want := range commands {
		decidesAll(t, p, want, command)
	}
}

func decidesAll(t *testing.T, p *Policy, want Action, commands ...string) {
	t.Helper()
	for _, command := range commands {
		decidesEach(t, p, []decided{{run(command), want}})
	}
}

type decided struct {
	effect Effect
	want   Action
}

func decidesEach(t *testing.T, p *Policy, effects []decided) {
	t.Helper()
	for _, c := range effects {
		if d := p.Decide([]Effect{c.effect}); d.Action != c.want {
			t.Errorf("%v: %v by %s, want %v: %s", c.effect, d.Action, d.Rule, c.want, d.Reason)
		}
	}
}

// lines are the lines of a text.
func lines(text string) []string { return strings.Split(strings.TrimSpace(text), "\n") }

// cases reads a file of testdata with lines of the form "command => want  # comment".
func cases(t *testing.T, name string) iter.Seq2[string, string] {
	t.Helper()
	text := must.Get(os.ReadFile(filepath.Join("testdata", name)))(t)
	return func(yield func(string, string) bool) {
		for _, line := range lines(string(text)) {
			line, _, _ = strings.Cut(line, "  # ")
			command, want, ok := strings.Cut(line, " =>")
			if !ok {
				t.Errorf("%s has no =>: %q", name, line)
			}
			if !yield(command, strings.TrimSpace(want)) {
				return
			}
		}
	}
}

// usage is what a well-known command does with its arguments, as far as they
// tell without running it.
type usage struct {
	Known    bool // the command is known, with this subcommand
	Operands []operand
	Names    []operand
}

// operand is a part of a command that names a file or a host.
type operand struct {
	Word Word
	Kind Kind   // Read, Write or Net
	Tree bool   // everything below it as well
	Part string // of the tree; see Effect
	Link bool   // the link itself is meant, not what it points to
}

// describe says what a command does with its operands, and those of a module or
// package that it starts.
func describe(argv []Word) usage {
	if len(argv) == 0 || argv[0].Dynamic {
		return usage{}
	}
	c := programs.Parse(argv)
	u := usage{Known: c.Known, Operands: operandsOf(c.Operands), Names: operandsOf(c.Prints)}
	for _, run := range c.Runs {
		if len(run.Argv) == 0 || c.Prints != nil {
			continue
		}
		inner := programs.Parse(run.Argv)
		u.Operands = append(u.Operands, operandsOf(inner.Operands)...)
		u.Known = u.Known && (inner.Known || strings.HasPrefix(c.Base, "python"))
	}
	return u
}

// operandsOf returns operands as effects name them.
func operandsOf(operands []programs.Operand) (out []operand) {
	kinds := map[programs.Kind]Kind{programs.Read: Read, programs.Write: Write, programs.Net: Net}
	for _, o := range operands {
		if o.Kind != programs.None {
			out = append(out, operand{Word: o.Word, Kind: kinds[o.Kind], Tree: o.Tree, Part: o.Part, Link: o.Link})
		}
	}
	return out
}

// suspects returns the words of a command that may be paths when its program is
// not known.
func suspects(argv []Word) []Word {
	c := programs.Parse(argv)
	out := c.Suspects
	for _, run := range c.Runs {
		out = append(out, programs.Parse(run.Argv).Suspects...)
	}
	return out
}
