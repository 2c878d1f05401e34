package shell

import (
	"slices"
	"strings"
	"testing"

	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/shell/texts"
)

func TestTheEffectsOfScripts(t *testing.T) {
	t.Parallel()
	ws, out := must.Workspace(t)
	for _, c := range cases(t, "effects.txt") {
		script, want, _ := strings.Cut(c.text, " ⇒ ")
		if got := shown(analysed(t, ws, strings.ReplaceAll(script, "OUT", out)), ws, out); got != want {
			t.Errorf("%s: %s\n got %s\nwant %s", c.section, script, got, want)
		}
	}
}

func TestScriptsAreOpaqueOrKnown(t *testing.T) {
	t.Parallel()
	ws, _ := must.Workspace(t)
	for _, c := range cases(t, "opaque.txt") {
		effects := analysed(t, ws, c.text)
		if got := slices.ContainsFunc(effects, isOpaque); got != (c.section == "opaque") {
			t.Errorf("%s: %s: %v", c.section, c.text, effects)
		}
	}
}

func isOpaque(e policy.Effect) bool { return e.Kind == policy.Opaque }

func TestWhatIsNotKnownIsOpaque(t *testing.T) {
	t.Parallel()
	ws, _ := must.Workspace(t)
	for _, script := range []string{
		"$(p)", "`p`", "$x$(p) y", "$IFS", "\"$@\"x$RANDOM", "*", "eval $(p)", "eval \"$(p)\" x", "trap \"$(p)\" EXIT", ". ./f", "source f", "bash -c \"$(p)\"",
		"bash -i -c p", "bash --rcfile f", "sh -c 'p {a,b}'", "xargs -I{} sh -c '{}'", "xargs sh -c", "env -S 'p'", "env --argv0=p q", "exec -a p q", "timeout $x$(p) p", "timeout --nope 5 p", "command $(p)", "exec $(p)",
		"enable -f x y", "hash -p x y", "shopt -s expand_aliases", "set -a; f() { p; }", "history -r x", "sh -c 'alias p=q'", "bind x", "complete -C p q", "export -f p\n\"export\" x",
		"cd() { p; }", "if p; then f() { :; }; fi; f",
		"((a[$(p)]))", "x='a[0]'; ((x))", "x='a[0]'; [[ $x -eq 0 ]]", "x='a[0]'; echo $((x))", "let 'a[0]=1'", "echo ${y:x}; x='a[0]'; echo ${y:x}", "declare -i n=$x$(p)", "declare -n r=x", "a[$(p)]=1", "x=$(p); echo ${a[x]}", "test -v \"$(p)\"",
		"echo ${!x}", "echo ${x@P}", "echo ${!x@}", "echo \"${x:-'y'}\"", "echo ${x:-<(p)}", "echo ${x:-\"y\"}", "echo $\"x\"", "echo $'\\cA'", "echo ~nobody/x", "echo ~+", "[[ a = @(a|$(p)) ]]",
		"echo $x{1,2}", "ls # x \\\np", "echo \"$\\\n(p)\"", "p\\\nq", "cat <<E \\\n$(p)\nE", "p\rq", "p\x01", "p\x7f", "p\u200bq", "p\u202eq", "p\u00a0q", "p\ufe0f",
		"p; if", "p 'x", "p $(q", "echo {01..100000}", "echo {1..99}{1..99}", "{x}>y p", "read \"$(p)\"", "mapfile -C p x", "unset 'a[0]'", "printf -v 'a[0]' x", "getopts $(p) x",
		strings.Repeat("(", 200) + strings.Repeat(")", 200), strings.Repeat("p;", 25000), strings.Repeat("x", texts.MaxScript+1),
	} {
		if !slices.ContainsFunc(analysed(t, ws, script), isOpaque) {
			t.Errorf("%.80q is taken for known", script)
		}
	}
}

func TestTextThatIsNotUTF8IsOpaque(t *testing.T) {
	t.Parallel()
	a := New(Options{Workspace: "/w"})
	if e := a.Effects("p \xff", "/w"); e[0].Kind != policy.Opaque {
		t.Errorf("%v", e)
	}
}

func TestHostileTextsAreBounded(t *testing.T) {
	t.Parallel()
	ws, _ := must.Workspace(t)
	for _, script := range []string{
		strings.Repeat("for x in 1 2 3 4 5 6 7 8 9; do ", 20) + "p" + strings.Repeat("; done", 20),
		strings.Repeat("while cd src; do ", 50) + "p" + strings.Repeat("; done", 50),
		strings.Repeat("cat * ", 9000),
		strings.Repeat("{a,b}", 60),
		strings.Repeat("if p; then ", 2000),
		strings.Repeat("$(", 90) + strings.Repeat(")", 90),
		strings.Repeat("\"$(", 90) + strings.Repeat(")\"", 90),
		strings.Repeat("x=1;", 10000) + strings.Repeat("(p);", 5000),
		"f() { g; g; }; g() { h; h; }; h() { i; i; }; i() { j; j; }; j() { k; k; }; k() { p; p; }; " + strings.Repeat("f;", 500),
		strings.Repeat("eval ", 1000) + "p",
		strings.Repeat("env ", 10000) + "p",
		strings.Repeat("! ", 20000) + "p",
		"x=aaaaaaaaaaaaaaaa;" + strings.Repeat("x=$x$x;", 60) + "p $x",
		"x='" + strings.Repeat("a ", 1000) + "'; " + strings.Repeat("p $x;", 5000),
		"x='" + strings.Repeat("a", 30000) + "'; p " + strings.Repeat("$x", 10000),
	} {
		effects := analysed(t, ws, script)
		if len(effects) > 2*maxSteps {
			t.Errorf("%.40q gives %d effects", script, len(effects))
		}
	}
}

func FuzzAnalyse(f *testing.F) {
	for _, seed := range []string{
		"ls -la | grep x > y 2>&1", "for x in {1..3}; do a $x; done", "cat <<E\n$(x)\nE", "a=(1 2); echo ${a[@]:1}", "f() { g \"$@\"; }; f x",
		"[[ a = @(b|c) ]] && ((x++))", "case x in a|b) y;; esac", "find . -exec sh -c 'x {}' \\;", "echo $'\\x41' \"$(a `b`)\"", "cd a && env X=1 timeout 5 b", "if a; then b; elif c; then d; fi &", "0&0\xff", "<<0&\n",
	} {
		f.Add(seed)
	}
	ws, _ := must.Workspace(f)
	a := newAnalyser(ws)
	f.Fuzz(func(t *testing.T, script string) {
		effects := a.Effects(script, ws)
		if len(effects) == 0 {
			t.Errorf("%q has no effects", script)
		}
		for _, e := range effects {
			if e.Kind == policy.Exec && len(e.Argv) == 0 {
				t.Errorf("%q: a command without words", script)
			}
			if e.Kind == policy.Opaque && strings.HasPrefix(e.Why, "its analysis failed") {
				t.Errorf("%q: %s", script, e.Why)
			}
		}
	})
}
