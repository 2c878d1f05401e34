package shell

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toold/toold/policy"
)

// scripts makes random scripts of programs p, q and r, which only record how
// they were called.
type scripts struct {
	*rand.Rand
	depth int
}

func (g *scripts) pick(list ...string) string { return list[g.IntN(len(list))] }

// word makes one word, with every kind of quoting and expansion.
func (g *scripts) word() string {
	switch g.IntN(25) {
	case 24:
		return g.pick("${x,,}", "${x@U}", "${x@L}", "${#}", "${@:1}", "${*:1:1}", "${x[0]}", "${x[@]}", "\"${x[@]}\"", "${!x*}", "${x?}", "$-", "$_", "${1:-p}", "${x//[ab]/p}", "${x/#a/p}", "${x:1}",
			"${x:n:1}", "$((n+x))", "${x-$(p)}", "\"${x:+\"p q\"}\"", "${x%$y}", "${y^}", "$'a'$x", "{p,$y}", "{$x,q}", "~/$x", "$x*", "\"$x\"*", "[$x]", "@(a|b)")
	case 0, 1, 2:
		return g.pick("a", "b", "-x", "--long=1", "a/b", "1")
	case 3:
		return "'" + g.pick("a b", "$x", "*", "`q`", "\\", "a;p") + "'"
	case 4:
		return `"` + g.pick("a b", "$x", "*", "\\$x", "$x$y", "a'b", "${x}z", "\\\\", "a\\n") + `"`
	case 5:
		return g.pick("$x", "${x}", "$x$y", "a$x", "$x/b", "$1", "$@", "$*", "$#", "$?", "\"$@\"", "\"$*\"", "$UNSET", "x$@y")
	case 6:
		return g.pick("${x:-a}", "${x:-$y}", "${x#a}", "${x%%b}", "${x/a/b}", "${x:0:1}", "${#x}", "${x:+a}", "${x^^}", "${y:=a}", "${x:-'a b'}", "${x:-\"$y\"}", "${x@Q}", "${!x}")
	case 7:
		return g.pick("{a,b}", "{1..3}", "x{a,$x}y", "{a,b}{c,d}", "{a", "a}", "{a}", "{,a}", "{a,{b,c}}", "'{a,b}'", "{a,'b c'}", "$x{a,b}", "{3..1}", "{a..c}", "{01..03}", "\\{a,b}", "{a\\,b,c}")
	case 8:
		return g.pick("*", "*.t", "?.t", "[ab].t", "sub/*", "[", "[]", "[a", "*\\*", "\"*\".t", "'a'*", ".*", "nothing*")
	case 9:
		return g.pick("~", "~/a", "\"~\"", "a~", "~+", "\\~", "a=~", "a:~/b")
	case 10:
		return g.pick("$'a\\tb'", "$'\\x41'", "$'\\101'", "$'a\\'b'", "$\"a\"", "$'\\u0041'", "$'\\e'")
	case 11:
		return g.pick("a\\ b", "\\a", "\\\\", "a\\'b", "\\$x", "\\*", "a\"b\"'c'", "\"\"", "''", "a\\\nb")
	case 12:
		return g.pick("$((1+2))", "$((x))", "$((x+1))", "$((n++))", "$[1+1]", "$((x=1))")
	case 13, 14:
		return g.nested("$(", ")")
	case 15:
		return g.nested("`", "`")
	case 16:
		return `"` + g.nested("$(", ")") + `"`
	case 17:
		return g.nested("<(", ")")
	case 18:
		return "${x:-" + g.nested("$(", ")") + "}"
	}
	return g.pick("a", "b", "c")
}

// nested makes a script inside marks, without going too deep.
func (g *scripts) nested(before, after string) string {
	if g.depth > 2 {
		return "a"
	}
	g.depth++
	defer func() { g.depth-- }()
	inner := g.list()
	if before == "`" {
		inner = strings.NewReplacer("`", "", "\\", "").Replace(inner)
	}
	return before + inner + after
}

// command makes one command.
func (g *scripts) command() string {
	words := make([]string, g.IntN(3))
	for i := range words {
		words[i] = g.word()
	}
	args := strings.Join(words, " ")
	program := g.pick("p", "q", "r")
	if g.depth > 3 {
		return program + " " + args
	}
	g.depth++
	defer func() { g.depth-- }()
	switch g.IntN(48) {
	case 23:
		return g.pick("mapfile -t x <<< 'p q'", "read -r x y <<< 'p q'", "read -a x <<< 'p q'", "IFS=: read x y <<< 'p:q'", "printf -v x '%s' p", "declare -n z=x; z=p", "declare -i n=1", "declare -A m=([a]=p)", "x=(p q)",
			"set -u", "set +e", "set -f", "shopt -s extglob", "shopt -s globstar", "shopt -s lastpipe", "trap 'q $x' USR1", "trap - EXIT", "unset -f f", "readonly x", "readonly x=p", "getopts ab x -a", "wait", "false", ": ${x:=p}",
			"cd sub && cd ..", "cd -", "pushd sub", "popd", "unalias -a", "hash -r", "enable -n printf", "exec 3>&1", "exec 3< a.t", "exec > out", "let x=1", "((x+=1))", "x=p y=q", "eval \"x=p\"", "eval 'f() { p; }'", "return", "break",
			"continue", "exit", "export -n x", "typeset x=q", "IFS=a", "PATH=sub", "umask 077", "caller", "f() { x=p; return; x=q; }; f", "f() { local x=p; g; }; g() { $x; }; f", "read -r x < a.t", "x= p", "x=q eval '$x'")
	case 24:
		return "case " + g.word() + " in a) " + g.list() + "\n" + g.pick(";;&", ";&", ";;") + " b|?) " + g.list() + "\n;; esac"
	case 25:
		return "until " + g.list() + "\ndo " + g.list() + "\nbreak\ndone"
	case 26:
		return "f() (" + g.list() + ")\nf " + args + g.pick("", " | f", " && f", "; unset -f f; f", "; f b")
	case 27:
		return g.pick("time ", "time -p ", "! ", "coproc ", "nice ", "nice -n 1 ", "timeout 9 ", "stdbuf -o0 ", "setsid -w ", "command -v ", "exec -a z ", "sh -c 'p $0' ", "env -u x ", "builtin command ", "eval command ") + program + " " + args
	case 28:
		return "for x; do " + g.list() + "\ndone"
	case 29:
		return g.pick("find . -name '*.t' -exec p {} \\;", "find . -type f -exec p {} +", "ls | xargs -n1 p", "ls | xargs -I% p % a", "find sub -execdir p {} \\;", "echo a b | xargs p $x", "ls | sort | xargs env p")
	case 30:
		return "set -- " + args + "; " + g.pick("$1 b", "\"$@\"", "$2", "shift; $1", "shift 2; \"$@\"", "p $#", "f() { \"$@\"; }; f p $1")
	case 0:
		return g.pick("x", "y", "n") + "=" + g.word()
	case 1:
		return g.pick("x=a", "x='p b'", "x='a b'", "y=$x", "n=1", "x+=c", "x=~/a", "x=q", "x=$1", "unset x", "x=()", "x=(a b)", "x[1]=p") + "; $x " + args
	case 2:
		return "(" + g.list() + ")"
	case 3:
		return "{ " + g.list() + "\n}"
	case 4:
		return "if " + g.list() + "\nthen " + g.list() + "\nelse " + g.list() + "\nfi"
	case 5:
		return "for x in " + args + " " + g.word() + "\ndo " + g.list() + "\ndone"
	case 6:
		return "case " + g.word() + " in a|" + g.word() + ") " + g.list() + "\n;; *) " + g.list() + "\n;; esac"
	case 7:
		return "f() { " + g.list() + "\n}\nf " + args
	case 8:
		return "! " + g.command()
	case 9:
		return g.pick("eval 'p a'", "eval p $x", "eval \"q \\$x\"", "eval "+args, "trap 'p trap' EXIT", "set -e", "set -- a b", "shopt -s nullglob", "cd sub", "cd ..", "cd gone", "read x <<< 'q z'", "printf -v x q", "shift", "alias p=q", "declare x=p", "local x=q", "export x=p")
	case 10:
		return g.pick("command", "exec", "builtin", "env", "env A=b", "nohup", "command -p", "env -i") + " " + program + " " + args
	case 11:
		return "bash -c 'p \"$x\" $1; q' z " + args
	case 12:
		return "cat <<E\n" + g.pick("a", "$x", "$(q h)", "`r h`", "\\$(q h)", "${x:-$(p h)}", "a # b") + "\nE"
	case 13:
		return "cat <<'E'\n$(q h)\nE"
	case 14:
		return program + " " + args + " " + g.pick("> out", ">/dev/null", "2>&1", "< a.t", "> $(q)", "<<< "+g.word(), "&> out", "3>&1")
	case 15:
		return program + " " + args + " # " + g.pick("x", "; q", "$(q)", "' \\")
	case 16:
		return "[[ " + g.pick("a == "+g.word(), "-n $(q)", "1 -eq 1", "$x -eq 0", "-z $x && -n $y", "a =~ $(q)") + " ]] && " + program
	case 17:
		return "A=" + g.word() + " " + program + " " + args
	case 18:
		return "while read x; do " + g.list() + "\ndone <<< a"
	case 19:
		return "for ((n=0; n<2; n++)); do " + program + " $n\ndone"
	case 20:
		return g.word() + " " + args
	case 21:
		return g.pick("((n=1))", "((x))", "let n=1", "n=$((n+1))") + "; " + program + " $n"
	case 22:
		return "printf '%s\\n' " + args + " | xargs " + program
	}
	return program + " " + args
}

// list makes a few commands with what stands between them.
func (g *scripts) list() string {
	out := g.command()
	for range g.IntN(3) {
		out += g.pick("; ", "\n", " && ", " || ", " | ", " & ", " |& ", "; ") + g.command()
	}
	return strings.ReplaceAll(strings.ReplaceAll(out, "\n; ", "\n"), "&;", "&")
}

// predicts reports whether a recorded call is one the words stand for.
func predicts(words []policy.Word, call []string) bool {
	if len(words) == 0 {
		return len(call) == 0
	}
	w := words[0]
	if !w.Dynamic {
		return len(call) > 0 && call[0] == w.Text && predicts(words[1:], call[1:])
	}
	if predicts(words[1:], call) {
		return true
	}
	for n := 1; n <= len(call); n++ {
		if (n > 1 || strings.HasPrefix(call[0], w.Text)) && predicts(words[1:], call[n:]) {
			return true
		}
	}
	return false
}

// TestBashRunsNothingThatWasNotPredicted runs random scripts in bash and compares
// what really ran with what was told: every call is an Exec effect, or the script
// is Opaque. "make stress" runs many more of them, apart from the machine.
func TestBashRunsNothingThatWasNotPredicted(t *testing.T) {
	t.Parallel()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("there is no bash to compare with")
	}
	seed, count := number(t, "TOOLD_SEED", 7), number(t, "TOOLD_SCRIPTS", 300)
	l := newLaboratory(t, bash)
	var next, known atomic.Int64
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		// Ends when all scripts are taken.
		workers.Go(func() {
			for n := next.Add(1); n <= int64(count); n = next.Add(1) {
				script := (&scripts{Rand: rand.New(rand.NewPCG(seed, uint64(n)))}).list()
				if l.compare(t, fmt.Sprint(n), script) {
					known.Add(1)
				}
			}
		})
	}
	workers.Wait()
	t.Logf("seed %d: %d scripts, %d of them compared, the others Opaque", seed, count, known.Load())
	if uint64(known.Load()) < count/4 {
		t.Errorf("only %d of %d scripts could be compared", known.Load(), count)
	}
}

// TestScriptsThatOnceHidACommand plays what random scripts found: bash ran what
// was not told.
func TestScriptsThatOnceHidACommand(t *testing.T) {
	t.Parallel()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("there is no bash to compare with")
	}
	l := newLaboratory(t, bash)
	for i, script := range []string{
		"q \"$(cat <<E\nx\nE\np ; p )\"",
		"q <(cat <<E\nx\nE\np ; p )",
		"case c in a|${y:=a}) r ;; *) r $y\n;; esac",
		"for x in a b\ndo local x=q; r ${x}z\ndone",
		"x=p; f() { local x=q; }; f; $x a",
		"q `x=$'a'b'` & r 1 `p  # ' `",
		"trap 'q $x' EXIT; x=a",
		"f() { p; } && f", "f() { p; } | f", "f() ( p ) || q; f", "function f { p; } && f", "f() { p; } & f", "f() { p; } > out && f", "f() if q; then p; fi && f",
		"x='a\\n'; q $x*", "x='a\\.t'; q $x*", "x='\\a.t'; q $x$y*", "x='a\\n'; q $x", "x='*\\n'; q a$x; set -f; q $x",
		// What the shell evaluates, or cannot set.
		"x='a[$(p)]'; RANDOM=$x", "OPTIND='a[$(p)]'", "LINES='a[$(p)]'; ((LINES))", "read SHLVL <<< 'a[$(p)]'; : $((SHLVL))",
		"q & wait -n -p 'a[$(p)]'", "mapfile -tC 'p #' -tc1 x < /etc/passwd", "declare -a x='([$(p)]=1)'", "declare -a x; declare x='([$(p)]=1)'",
		"readonly x=p; f() { local x=q; $x; }; f", "readonly x=p; export x=q; $x", "readonly x=p; x=q\n$x", "readonly x=p; unset x; $x a",
		"declare -l x=P; $x", "declare -u x=p; q $x",
		// What runs without being called.
		"trap -- '-x; p' EXIT", "trap 'x=p' DEBUG; x=q; $x", "command_not_found_handle() { p; }; nothing", "(trap q EXIT; q() { p; })",
		"trap q DEBUG; q() { p; }; q() { :; }", "eval -- p",
		// What does not run, and so changes nothing.
		"f() { x=p; return; x=q; }; f; $x", "x=p\n: $((1/0)); x=q\n$x", "x=p\ny=$((1/0)) x=q\n$x", "x=p; n=08\n: $((n)); x=q\n$x", "x=p\n: $((2**-1)); x=q\n$x",
		"x=p; y=a\n: ${y:0:-5}; x=q\n$x", "x=p\nUID=1; x=q\n$x", "FUNCNEST=1; g() { :; }; f() { g; x=q; }; x=p; f\n$x", "shopt -s failglob; x=p\n: *.none; x=q\n$x",
		"x=p; { x=q; } < none; $x", "x=p; { x=q; } >&9; $x", "x=p; exec 2>&-; { x=q; } >&2; $x", "x=p; x=q :; $x", "x=p; x=q eval :; $x",
		"x=p; g() { unset x; $x; }; f() { local x=q; g; }; f", "x=p; cd none || exit 1 2; $x",
	} {
		l.compare(t, fmt.Sprint("known-", i), script)
	}
}

// number reads a number from the environment.
func number(t *testing.T, name string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// descriptor is the name bash gives a process substitution.
var descriptor = regexp.MustCompile("^/dev/fd/[0-9]+")

// laboratory is where scripts run.
type laboratory struct {
	bash string
	base string // holds the programs, and a folder for each script
}

func newLaboratory(t *testing.T, bash string) *laboratory {
	t.Helper()
	l := &laboratory{bash: bash, base: t.TempDir()}
	l.stubs(t)
	return l
}

// stubs makes programs that record how they are called, each in a file of its
// own, since several may write at once.
func (l *laboratory) stubs(t *testing.T) {
	t.Helper()
	bin := filepath.Join(l.base, "bin")
	if err := os.Mkdir(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	const stub = "#!/bin/sh\nprintf '%s\\0' \"${0##*/}\" \"$@\" > \"${0%/bin/*}/log.$$\"\n"
	for _, name := range []string{"p", "q", "r"} {
		makeProgram(t, filepath.Join(bin, name), stub)
	}
	for _, name := range []string{"cat", "xargs", "env", "nohup", "bash", "sh", "find", "ls", "sort", "nice", "timeout", "stdbuf", "setsid"} {
		if path, err := exec.LookPath(name); err == nil {
			if err := os.Symlink(path, filepath.Join(bin, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// folder makes the folder of one script: its programs and its files.
func (l *laboratory) folder(t *testing.T, name string) string {
	dir := filepath.Join(l.base, name)
	for _, sub := range []string{"w/sub", "w/.git"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			t.Error(err)
		}
	}
	for _, file := range []string{"w/a.t", "w/b.t", "w/sub/c.t", "w/.git/HEAD"} {
		if err := os.WriteFile(filepath.Join(dir, file), nil, 0o644); err != nil {
			t.Error(err)
		}
	}
	if err := os.Symlink(filepath.Join(l.base, "bin"), filepath.Join(dir, "bin")); err != nil {
		t.Error(err)
	}
	return dir
}

// compare runs one script. It reports whether the script was not Opaque.
func (l *laboratory) compare(t *testing.T, name, script string) bool {
	dir := l.folder(t, name)
	defer os.RemoveAll(dir)
	env := []string{"PATH=" + dir + "/bin", "HOME=" + dir + "/home"}
	a := New(Options{Workspace: dir + "/w", Env: map[string]string{"PATH": dir + "/bin", "HOME": dir + "/home"}})
	effects := a.Effects(script, dir+"/w")
	for _, e := range effects {
		if e.Kind == policy.Opaque {
			return false
		}
	}
	ctx, stop := context.WithTimeout(t.Context(), hang)
	defer stop()
	cmd := exec.CommandContext(ctx, l.bash, "--noprofile", "--norc", "-c", script)
	cmd.Dir, cmd.Env = dir+"/w", env
	// Run then waits for what is in the background too: it holds the same pipe.
	cmd.Stderr = struct{ io.Writer }{io.Discard}
	cmd.WaitDelay = time.Second
	// How the script ends does not matter, only what it runs.
	_ = cmd.Run()
	for _, call := range calls(t, dir) {
		if !predicted(effects, call) {
			t.Errorf("script %s: bash ran %q\nof %s\npredicted %s", name, call, script, fmt.Sprint(effects))
		}
	}
	return true
}

// calls reads what the programs recorded.
func calls(t *testing.T, dir string) [][]string {
	logs, err := filepath.Glob(dir + "/log.*")
	if err != nil {
		t.Error(err)
	}
	var out [][]string
	for _, log := range logs {
		entry, err := os.ReadFile(log)
		if err != nil {
			t.Error(err)
		}
		if len(entry) == 0 {
			continue // killed before it wrote
		}
		call := strings.Split(strings.TrimSuffix(string(entry), "\x00"), "\x00")
		for i, word := range call {
			call[i] = descriptor.ReplaceAllString(word, procSubst)
		}
		out = append(out, call)
	}
	return out
}

// predicted reports whether one of the effects stands for the call.
func predicted(effects []policy.Effect, call []string) bool {
	for _, e := range effects {
		if e.Kind == policy.Exec && predicts(e.Argv, call) {
			return true
		}
	}
	return false
}
