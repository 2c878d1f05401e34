package shell

import (
	"slices"
	"strings"
	"testing"

	"github.com/toold/toold/policy"
)

// wants compares the effects of scripts with what they should be.
func wants(t *testing.T, cases [][2]string) {
	t.Helper()
	ws, out := workspace(t)
	for _, c := range cases {
		script := strings.ReplaceAll(c[0], "OUT", out)
		if got := shown(analysed(t, ws, script), ws, out); got != c[1] {
			t.Errorf("%s\n got %s\nwant %s", c[0], got, c[1])
		}
	}
}

func TestEveryCommandOfAScriptIsFound(t *testing.T) {
	t.Parallel()
	const both = "run p; run q"
	wants(t, [][2]string{
		{"p; q", both},
		{"p && q", both},
		{"p || q", both},
		{"p | q", both},
		{"p |& q", both},
		{"p & q", both},
		{"p\nq", both},
		{"(p; q)", both},
		{"{ p; q; }", both},
		{"! p; q", both},
		{"time p; q", both},
		{"if p; then q; fi", both},
		{"if true; then p; else q; fi", both},
		{"if true; then p; elif q; then :; fi", both},
		{"while p; do q; done", both},
		{"until p; do q; done", both},
		{"for x in 1 2; do p; q; done", both},
		{"for ((i=0; i<3; i++)); do p; q; done", both},
		{"case x in a) p;; *) q;; esac", both},
		{"f() { p; }; f; q", both},
		{"function f { p; }\nf; q", both},
		{"p $(q)", "run p …; run q"},
		{"p `q`", "run p …; run q"},
		{"p \"$(q)\"", "run p …; run q"},
		{"p <(q)", "run p /dev/fd/63; run q"},
		{"p > >(q)", both},
		{"p <<< $(q)", both},
		{"p <<E\n$(q)\nE", both},
		{"p <<'E'\n$(q)\nE", "run p"},
		{"x=$(p) q", "env x; run p; run q"},
		{"x=$(p); q", both},
		{"p ${x:-$(q)}", "run p …; run q"},
		{"[[ $(p) = x ]] && q", both},
		{"p; # q", "run p"},
		{"p {a,b} {1..3}", "run p a b 1 2 3"},
		{"trap 'p' EXIT; q", both},
		{"eval 'p; q'", both},
		{"coproc p", "opaque"},
		{"select x in a; do p; done", "opaque"},
	})
}

func TestWrappersAreUnwrapped(t *testing.T) {
	t.Parallel()
	wants(t, [][2]string{
		{"env A=1 B=2 p x", "env A; env B; run p x"},
		{"env -i p", "run p"},
		{"env -u X -- p", "run p"},
		{"env", "run env"},
		{"timeout -k 5 10 p x", "run p x"},
		{"timeout --signal=KILL 10 p", "run p"},
		{"nice -n 5 p", "run p"},
		{"nice -5 p", "run p"},
		{"nohup p", "run p; w nohup.out"},
		{"nohup p >log 2>&1 &", "run p; w log"},
		{"nohup p >/dev/null", "run p"},
		{"nohup p 2>log", "run p; w log; w nohup.out"},
		{"nohup p >/dev/stderr", "run p; w nohup.out"},
		{"{ nohup p; } >log; nohup q", "run p; run q; w log; w nohup.out"},
		{"setsid -w p", "run p"},
		{"stdbuf -oL p", "run p"},
		{"command p", "run p"},
		{"command -v p", "run :"},
		{"exec p", "run p"},
		{"builtin eval p", "run p"},
		{"timeout 5 nice env p", "run p"},
		{"bash -c p", "run p"},
		{"bash -ec 'p; sh -c q'", "run p; run q"},
		{"/bin/sh -c p", "run p"},
		{"bash -c 'p $1' x y", "run p y"},
		{"time -- p", "opaque; run -- p"},
		{"git push nested", "opaque; r nested; run git push nested"},
		{"git push src", "r src; run git push src"},
		{"git init -q e; git push e", "opaque; r e; run git init -q e; run git push e; w+ e"},
		{"x=p; getopts -- q x -q; $x", "opaque"},
		{"getopts \"$(q)\" x", "opaque; run q"},
		{"flock a.txt sh -c 'x=p; $x'", "run flock a.txt sh -c x=p; $x; run p; w a.txt"},
		{"uv run env A=1 bash -c 'x=p; $x'", "env A; run p; run uv run env A=1 bash -c x=p; $x"},
		{"LC_ALL=C p", "env LC_ALL; run p"},
		{"LC_ALL=zh_TW.BIG5 p", "env LC_ALL; opaque; run p"},
		{"env LC_CTYPE=de_DE.utf8 p", "env LC_CTYPE; run p"},
		{"bash -lc 'p ~/x'", "run p /home/u/x"},
		{"bash -lc 'x=a; p $x ${x:-b} $y ${y:-b} \"${y+b}\"'", "run p a a … … …"},
		{"bash -lc 'x=a bash -c \"p \\$y\"'", "env x; run p …"},
		{"bash -lc 'cd ./src && cat x; cd deep && cat y'", "r ?; r src/x; run cat x; run cat y"},
		{"HOME=$PWD bash --login -c p", "env HOME; opaque; run p"},
		{"echo x > /home/u/.profile; sh -lc p", "opaque; run echo x; run p; w /home/u/.profile"},
		{"xargs p x", "run p x …"},
		{"xargs -0 -n 1 p", "run p …"},
		{"xargs -I{} p a{}b", "run p a…"},
		{"xargs", "run echo …"},
		{"find . -exec p {} ';'", "r+ .; run find . -exec p {} ;; run p .…"},
		{"find a b -exec p {} ';'", "r+ a; r+ b; run find a b -exec p {} ;; run p …"},
		{"find src -name x -execdir p {} ';'", "r src/x; r+ src; run find src -name x -execdir p {} ;; run p ./…"},
		{"find src '(x' -exec p {} ';'", "r+ (x; r+ src; run find src (x -exec p {} ;; run p …"},
		{"find . -ok p {} + x ';'", "opaque; r+ .; run find . -ok p {} + x ;; run p .…"},
		{"find . -exec p -x {} +", "r+ .; run find . -exec p -x {} +; run p -x .…"},
	})
}

func TestWhatIsNotKnownIsOpaque(t *testing.T) {
	t.Parallel()
	ws, _ := workspace(t)
	for _, script := range []string{
		"$(p)", "`p`", "$x$(p) y", "$IFS", "\"$@\"x$RANDOM", "*", "eval $(p)", "eval \"$(p)\" x", "trap \"$(p)\" EXIT", ". ./f", "source f", "bash -c \"$(p)\"",
		"bash -i -c p", "bash --rcfile f", "sh -c 'p {a,b}'", "xargs -I{} sh -c '{}'", "xargs sh -c", "env -S 'p'", "env --argv0=p q", "exec -a p q", "timeout $x$(p) p", "timeout --nope 5 p", "command $(p)", "exec $(p)",
		"enable -f x y", "hash -p x y", "shopt -s expand_aliases", "set -a", "history -r x", "sh -c 'alias p=q'", "bind x", "complete -C p q", "export -f p\n\"export\" x",
		"cd() { p; }", "if p; then f() { :; }; fi; f",
		"((a[$(p)]))", "x='a[0]'; ((x))", "x='a[0]'; [[ $x -eq 0 ]]", "x='a[0]'; echo $((x))", "let 'a[0]=1'", "echo ${y:x}; x='a[0]'; echo ${y:x}", "declare -i n=$x$(p)", "declare -n r=x", "a[$(p)]=1", "x=$(p); echo ${a[x]}", "test -v \"$(p)\"",
		"echo ${!x}", "echo ${x@P}", "echo ${!x@}", "echo \"${x:-'y'}\"", "echo ${x:-<(p)}", "echo ${x:-\"y\"}", "echo $\"x\"", "echo $'\\cA'", "echo ~nobody/x", "echo ~+", "[[ a = @(a|$(p)) ]]",
		"echo $x{1,2}", "ls # x \\\np", "echo \"$\\\n(p)\"", "p\\\nq", "cat <<E \\\n$(p)\nE", "p\rq", "p\x01", "p\x7f", "p\u200bq", "p\u202eq", "p\u00a0q", "p\ufe0f",
		"p; if", "p 'x", "p $(q", "echo {01..100000}", "echo {1..99}{1..99}", "{x}>y p", "read \"$(p)\"", "mapfile -C p x", "unset 'a[0]'", "printf -v 'a[0]' x", "getopts $(p) x",
		strings.Repeat("(", 200) + strings.Repeat(")", 200), strings.Repeat("p;", 25000), strings.Repeat("x", maxScript+1),
	} {
		found := false
		for _, e := range analysed(t, ws, script) {
			found = found || e.Kind == policy.Opaque
		}
		if !found {
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

func TestEverydayScriptsAreKnown(t *testing.T) {
	t.Parallel()
	ws, _ := workspace(t)
	for _, script := range []string{
		"ls -la", "n=3; head -n $n a.txt", "for f in *.txt; do wc -l \"$f\"; done", "for f in a b; do echo \"$f\"; done", "cd src && ls", "cd src; ls ..", "if [ -f a.txt ]; then cat a.txt; fi",
		"cat a.txt | grep -c x > /dev/null 2>&1", "echo \"done: $?\"", "echo $((1+2))", "i=0; while [ $i -lt 3 ]; do i=$((i+1)); done", "i=0; for ((i=0; i<3; i++)); do echo $i; done", "export CI=1; ls", "set -euo pipefail; ls", "x=$(git rev-parse HEAD); echo \"$x\"",
		"cat <<'EOF' > new.txt\nhello $(x) `y`\nEOF", "printf '%s\\n' a b", "test -d src || mkdir src", "ls \\\n  -l", "declare -g x=p; ls $x", "find . -name '*.go' | xargs grep -n x", "[[ -f a.txt && $x = y* ]] && ls", "[[ 3 -eq 4 ]]", "f() { echo \"$1\"; }; f a", "while read -r line; do echo \"$line\"; done < a.txt",
		"arr=(a b); echo \"${arr[0]}\" \"${arr[@]}\"", "echo ${x:-y} ${#x} ${x%.txt} ${x/a/b}", "echo 'it''s' \"a\\\"b\" c\\ d", "echo $'a\\tb\\n'", "(cd src && ls)", "trap 'rm -f a.txt' EXIT", "wait", "! grep -q x a.txt", "case $1 in a) ls;; esac", "time ls", "echo {a,b}.txt", "ls # a comment", "echo ä ö 日本",
	} {
		for _, e := range analysed(t, ws, script) {
			if e.Kind == policy.Opaque {
				t.Errorf("%q is not known: %s", script, e.Why)
			}
		}
	}
}

func TestVariablesAreFollowed(t *testing.T) {
	t.Parallel()
	wants(t, [][2]string{
		{"x=ls; $x -l", "run ls -l"},
		{"x='p -a  b'; $x", "run p -a b"},
		{"x='p q'; \"$x\"", "run p q"},
		{"p \"$UNSET/\"", "run p /"},
		{"p $UNSET", "run p"},
		{"c$@at a.txt", "r a.txt; run cat a.txt"},
		{"x=a; x+=b; p $x", "run p ab"},
		{"p $HOME ~ ~/x", "run p /home/u /home/u /home/u/x"},
		{"x=1; if p; then x=2; fi; p $x", "run p; run p …"},
		{"x=1; (x=2); p $x", "run p 1"},
		{"x=1; x=2 | p; p $x", "run p; run p 1"},
		{"for x in a b; do p $x; done", "run p a; run p b"},
		{"x=1; for i in a b; do p $x; x=2; done", "run p 1; run p 2"},
		{"x=1; while p; do x=2; done; p $x", "run p; run p …"},
		{"read x; p \"$x\"", "run p …"},
		{"x=1; unset x; p \"[$x]\"", "run p []"},
		{"f() { x=2; }; x=1; f; p $x", "run p 2"},
		{"f() { p $1 $#; }; f a", "run p a 1"},
		{"x=1; eval 'x=2'; p $x", "run p 2"},
		{"p a$(q)b", "run p a…; run q"},
		{"p \"a$(q)b\"", "run p a…; run q"},
		{"p $((1+2))", "run p …"},
	})
}

func TestAssignmentsThatCommandsSeeAreEffects(t *testing.T) {
	t.Parallel()
	wants(t, [][2]string{
		{"x=1; p", "run p"},
		{"x=1 p", "env x; run p"},
		{"export x=1; p", "env x; run p"},
		{"x=1; export x; p", "env x; run p"},
		{"declare -x x=1; p", "env x; run p"},
		{"PATH=x; p", "env PATH; run p"},
		{"PATH=x p", "env PATH; run p"},
		{"HOME=x; p", "env HOME; run p"},
		{"USER=x; p", "env USER; run p"},
		{"for PATH in x; do p; done", "env PATH; run p"},
		{"read PATH; p", "env PATH; run p"},
		{"printf -v PATH x; p", "env PATH; run p; run printf -v PATH x"},
		{": ${PATH:=x}; p", "env PATH; run p"},
		{"((PATH=1)); p", "env PATH; run p"},
		{"unset PATH; p", "env PATH; run p"},
		{"IFS=x; p", "env IFS; run p"},
		{"local PATH=x; p", "env PATH; run p"},
	})
}

func TestFilesAreResolved(t *testing.T) {
	t.Parallel()
	wants(t, [][2]string{
		{"p > a.txt", "run p; w a.txt"},
		{"p >> new/x", "run p; w new/x"},
		{"p < a.txt", "r a.txt; run p"},
		{"p <> a.txt", "r a.txt; run p; w a.txt"},
		{"p &> a.txt", "run p; w a.txt"},
		{"p >& a.txt", "run p; w a.txt"},
		{"p >| a.txt", "run p; w a.txt"},
		{"p 2>&1 >/dev/null </dev/null", "run p"},
		{"p 3> a.txt", "run p; w a.txt"},
		{"> a.txt", "w a.txt"},
		{"x=$(< a.txt)", "r a.txt"},
		{"p > \"$(q)\"", "net ; run p; run q; w ?"},
		{"p < \"/dev/tcp/$(q)/80\"", "net ; r ?; run p; run q"},
		{"p < \"a/$(q)\"", "r ?; run p; run q"},
		{"p > $UNSET", "run p; w ?"},
		{"p > *.txt", "run p; w ?"},
		{"p > link/x", "run p; w OUT/sub/x"},
		{"p > link/../x", "run p; w OUT/x"},
		{"p < file", "r OUT/secret; run p"},
		{"p < loop", "r ; run p"},
		{"cat ../out/secret", "r OUT/secret; run cat ../out/secret"},
		{"cat *.txt", "r *.txt; r a.txt; r b.txt; run cat …"},
		{"cat .e*", "r .e*; r .env; run cat .e…"},
		{"cat -- -x", "r -x; run cat -- -x"},
		{"rm file", "run rm file; w+ file"},
		{"cat file", "r OUT/secret; run cat file"},
		{"mv file new", "r+ file; run mv file new; w new; w new/file; w+ file"},
		{"cp -r src link", "r+ src; run cp -r src link; w OUT/sub; w+ OUT/sub/src"},
		{"rm -rf *", "run rm -rf …; w+ ?; w+ a.txt; w+ b.txt; w+ file; w+ inside; w+ link; w+ loop; w+ nested; w+ src"},
	})
}

func TestFoldersAreFollowed(t *testing.T) {
	t.Parallel()
	wants(t, [][2]string{
		{"cd src; cat x", "r src/x; run cat x"},
		{"ls; cd src; ls ..; cd -; cat x", "r .; r x; run cat x; run ls; run ls .."},
		{"rmdir src; cd src; cat x", "r src/x; r x; run cat x; run rmdir src; w+ src"},
		{"make; cd src; cat x", "r src/x; r x; run cat x; run make"},
		{"cd src | cat; make & cd src; cat x", "r src/x; r x; run cat; run cat x; run make"},
		{"(sleep 1; cd src; cat x) & make", "r src/x; r x; run cat x; run make; run sleep 1"},
		{"cd src/../src; cat x", "r src/x; r x; run cat x"},
		{"cd a.txt; cat x", "r a.txt/x; r x; run cat x"},
		{"cd src && cat x", "r src/x; run cat x"},
		{"cd gone && cat x", "r gone/x; run cat x"},
		{"cd gone; cat x", "r gone/x; r x; run cat x"},
		{"cd gone || exit 1; cat x", "r gone/x; run cat x"},
		{"cd gone || p; cat x", "r gone/x; r x; run cat x; run p"},
		{"(cd src); cat x", "r x; run cat x"},
		{"cd src | p; cat x", "r x; run cat x; run p"},
		{"cd link; cat x", "r OUT/sub/x; run cat x"},
		{"cd src && cd gone && p; cat x", "r src/gone/x; r src/x; run cat x; run p"},
		{"p && cd src && q && cat x || exit; cat x", "r src/x; run cat x; run p; run q"},
		{"cd \"$(p)\"; cat x", "r ?; run cat x; run p"},
		{"cd -; cat x", "r x; run cat x"},
		{"cd src && cd - && cat x", "r x; run cat x"},
		{"pushd src; cat x", "r ?; run cat x"},
		{"cd; cat x", "r /home/u/x; r x; run cat x"},
		{"for i in 1 2; do cat x; cd src; done", "r src/x; r x; run cat x"},
		{"for i in *; do cat x; cd src; done", "r ?; r src/src/x; r src/x; r x; run cat x"},
		{"bash -c 'cd src; cat x'; cat y", "r src/x; r x; r y; run cat x; run cat y"},
	})
}

func TestWhatMayNotRunLeavesTheFolderOpen(t *testing.T) {
	t.Parallel()
	wants(t, [][2]string{
		{"cd src < none; cat x", "r none; r src/x; r x; run cat x"},
		{"while :; do cd src; break; cd ..; done; cat x", "r src/x; r x; run cat x"},
		{"f() { return; cd src; }; f; cat x", "r x; run cat x"},
		{"cd gone || exit 1 2; cat x", "r gone/x; r x; run cat x"},
	})
}

func TestVariablesThatBuiltinsSetAreEffects(t *testing.T) {
	t.Parallel()
	wants(t, [][2]string{
		{"read -aPATH <<< x; p", "env PATH; run p"},
		{"read -raPATH <<< x; p", "env PATH; run p"},
		{"q & wait -n -p PATH; p", "env PATH; run p; run q"},
		{"read -p \"$(q)\" x; p", "run p; run q"},
		{"q & pid=$!; wait $pid; wait \"$!\"", "run q"},
		{"IFS= read -r x; p", "run p"},
		{"IFS=a; p", "env IFS; run p"},
		{"IFS= p", "env IFS; run p"},
	})
}

func TestHostsAreFound(t *testing.T) {
	t.Parallel()
	wants(t, [][2]string{
		{"curl https://a.example/x", "net a.example; run curl https://a.example/x"},
		{"curl a.example", "net a.example; run curl a.example"},
		{"curl http://2130706433/", "net ; run curl http://2130706433/"},
		{"curl http://u@a.example/", "net a.example; run curl http://u@a.example/"},
		{"curl https://u:p%40@a.example:8443/x@y", "net a.example; run curl https://u:p%40@a.example:8443/x@y"},
		{"git clone https://token@a.example/x", "net a.example; run git clone https://token@a.example/x; w+ x"},
		{"curl http://u@b.example@a.example/", "net ; run curl http://u@b.example@a.example/"},
		{"curl 'http://b.example#@a.example/'", "net b.example; run curl http://b.example#@a.example/"},
		{"curl 'http://b.example&u@a.example/'", "net ; run curl http://b.example&u@a.example/"},
		{"curl 'http://u@b.example?@a.example/'", "net ; run curl http://u@b.example?@a.example/"},
		{"curl 'http://b.example;@a.example/'", "net ; run curl http://b.example;@a.example/"},
		{"curl \"$UNSET$(p)\"", "net ; run curl …; run p"},
		{"p > /dev/tcp/a.example/80", "net a.example; run p"},
		{"wget -O - http://a.example/", "net a.example; run wget -O - http://a.example/"},
	})
}

func TestGitOutsideTheWorkspacesRepositoryIsOpaque(t *testing.T) {
	t.Parallel()
	wants(t, [][2]string{
		{"git status", "run git status"},
		{"cd src && git status", "run git status"},
		{"git -C src status", "run git status"},
		{"cd nested && git status", "opaque; run git status"},
		{"git -C nested status", "opaque; run git status"},
		{"cd link && git status", "opaque; run git status"},
	})
}

func TestHostileTextsAreBounded(t *testing.T) {
	t.Parallel()
	ws, _ := workspace(t)
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
	ws, _ := workspace(f)
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

// Bash drops the backslash at the end of this text, and keeps that of one without the line.
func TestABackslashAtTheEndIsOpaque(t *testing.T) {
	t.Parallel()
	ws, _ := workspace(t)
	found := newAnalyser(ws).Effects(": '\n'; cat .env\\", ws)
	if !slices.ContainsFunc(found, func(e policy.Effect) bool { return e.Kind == policy.Opaque }) {
		t.Errorf("predicted: %v", found)
	}
}

// Only the name of a file may follow wc, and not another command.
func TestWhatFollowsACountIsNoNumber(t *testing.T) {
	t.Parallel()
	ws, _ := workspace(t)
	for script, opaque := range map[string]bool{
		`x=$(wc -l <none||cat<payload); echo $((x))`: true,
		`x=$(wc -l <a&&cat<payload); echo $((x))`:    true,
		`x=$(wc -l <"a.txt"); echo $((x))`:           false,
	} {
		found := newAnalyser(ws).Effects(script, ws)
		if got := slices.ContainsFunc(found, func(e policy.Effect) bool { return e.Kind == policy.Opaque }); got != opaque {
			t.Errorf("%s is predicted as %v", script, found)
		}
	}
}
