package policy

import (
	"strings"
	"testing"
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
	p, err := Compile(place(), f, further...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// rules makes a policy of command rules on the given defaults.
func rules(t testing.TB, d Defaults, r ...Rule) *Policy {
	t.Helper()
	return compile(t, File{Name: "p.yaml", Defaults: d, Commands: r})
}
