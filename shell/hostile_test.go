package shell

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/toold/toold/policy"
)

// hostileSize is the longest text that is analysed.
const hostileSize = maxScript

// judging is a policy with n rules that do not matter beside a few that do.
func judging(t testing.TB, ws string, n int) *policy.Policy {
	t.Helper()
	ask := policy.Defaults{Bash: policy.Ask, Read: policy.Ask, Write: policy.Ask, Net: policy.Ask, Unanalysable: policy.Ask}
	f := policy.File{Defaults: ask, Presets: []string{"shell-readonly", "shell-workspace"}}
	for i := range n {
		f.Commands = append(f.Commands, policy.Rule{ID: fmt.Sprint("r", i), Action: policy.Action(i % 3), Run: []string{fmt.Sprintf("tool%d sub **", i)}})
	}
	f.Commands = append(f.Commands,
		policy.Rule{ID: "privilege", Action: policy.Deny, Run: []string{"sudo **"}},
		policy.Rule{ID: "remove", Action: policy.Deny, Run: []string{"rm -r -f **"}},
		policy.Rule{ID: "pushes", Action: policy.Ask, Run: []string{"* push **"}},
		policy.Rule{ID: "go", Action: policy.Allow, Run: []string{"go {build,test,vet} **"}},
	)
	f.Paths = []policy.Rule{
		{ID: "workspace", Action: policy.Allow, Paths: []string{"${workspace}/**"}},
		{ID: "secrets", Action: policy.Deny, Paths: []string{"${workspace}/**/.env", "**/*.pem"}},
	}
	p, err := policy.Compile(policy.Options{Workspace: ws, Home: "/home/agent"}, f)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestNoAmountOfTextHidesADeniedCommand puts a denied command before every hostile
// text, and behind those that are plain lists: where the bounds are used up, what
// is left is still looked through for what is denied.
func TestNoAmountOfTextHidesADeniedCommand(t *testing.T) {
	t.Parallel()
	ws, _ := workspace(t)
	a := newAnalyser(ws)
	p := judging(t, ws, 0)
	for name, script := range hostileScripts() {
		if len(script) > hostileSize {
			t.Errorf("%s: it has %d bytes", name, len(script))
		}
		if d := p.Decide(a.Effects("sudo id\n"+script, ws)); d.Action != policy.Deny {
			t.Errorf("%s, behind a denied command: %v by %s", name, d.Action, d.Rule)
		}
	}
	for _, script := range []string{
		fill("", "a;", "sudo id"), fill("", "ls x%d;", `su"do" id`), fill("", "(a);", "(sudo id)"), nest(20000, "(", "sudo id", ")"),
		fill("", "x=a; ", "env sudo id"), fill("", "env ", "sudo id"), fill("a | ", "xargs ", "sudo id"), fill("find . ", "-exec find . ", `-exec sudo id \;`),
		fill("if a; then a; ", "elif a; then a; ", "else sudo id; fi"), fill("a", "|a", "|sudo id"), fill("a", "&&a", "&& sudo id"),
		"f() { sudo id; } && f", "function f { a; } | sudo id",
		"x=" + strings.Repeat("y", 32<<10) + ";" + fill("", "a $x;", "")[:32000] + "\nsudo id", fill("x=a;", "x+=aaaaaaaa;", "sudo id"),
	} {
		if d := p.Decide(a.Effects(script, ws)); d.Action != policy.Deny {
			t.Errorf("%.60s…%s: %v by %s", script, script[max(0, len(script)-40):], d.Action, d.Rule)
		}
	}
}

// TestWhatIsBeyondTheBoundsIsNeverAllowed puts a denied command behind every
// hostile text, under a policy that allows all else.
func TestWhatIsBeyondTheBoundsIsNeverAllowed(t *testing.T) {
	t.Parallel()
	ws, _ := workspace(t)
	a := newAnalyser(ws)
	all := policy.Defaults{Bash: policy.Allow, Read: policy.Allow, Write: policy.Allow, Net: policy.Allow, UnknownRead: policy.Allow, UnknownWrite: policy.Allow, Unanalysable: policy.Ask, UnknownEnv: policy.Allow}
	p, err := policy.Compile(policy.Options{Workspace: ws, Home: "/home/agent"}, policy.File{
		Defaults: all, Commands: []policy.Rule{{ID: "privilege", Action: policy.Deny, Run: []string{"sudo **"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, script := range hostileScripts() {
		const denied = "\nsudo id"
		script = script[:min(len(script), hostileSize-len(denied))] + denied
		if d := p.Decide(a.Effects(script, ws)); d.Action == policy.Allow {
			t.Errorf("%s, before a denied command: allowed by %s", name, d.Rule)
		}
	}
}

// TestALongDocumentIsNoHostileText writes files as long as a script may be: what stands
// in them is no work for the analysis, and no reason for a question.
func TestALongDocumentIsNoHostileText(t *testing.T) {
	t.Parallel()
	ws, _ := workspace(t)
	a := newAnalyser(ws)
	p := judging(t, ws, 0)
	for name, line := range map[string]string{
		"prose":   "He said that it's done; then, while we waited (for a case), nobody did.\n",
		"Go":      "func f%d(x []int) (err error) {\n\tif x[0] > 1 && y { return fmt.Errorf(`a %s`, b) }\n}\n",
		"Python":  "for i in range(%d):\n    if x[i] == '\\n':\n        print(f\"{i}\")\n",
		"shell":   "while read -r x; do case $x in a) sudo id;; esac; done < \"$1\"\n",
		"JSON":    `{"a%d": [1, {"b": "c\\n"}]},` + "\n",
		"numbers": "1 2 3 4 5 6 7 8 9\n",
		"letters": "a b c d e f g\n",
		"lines":   "\n",
	} {
		script := fill("cat > src/notes.txt <<'EOF'\n", line, "EOF\n")
		if len(script) < hostileSize-200 {
			t.Errorf("%s: it has %d bytes", name, len(script))
		}
		if d := p.Decide(a.Effects(script, ws)); d.Action != policy.Allow {
			t.Errorf("%s: %v by %s: %s", name, d.Action, d.Rule, d.Reason)
		}
	}
}

// fill repeats a piece up to the size of the longest script; %d in it is the
// number of the repetition.
func fill(before, piece, after string) string {
	var out strings.Builder
	out.WriteString(before)
	for n := 0; ; n++ {
		text := strings.ReplaceAll(piece, "%d", fmt.Sprint(n))
		if out.Len()+len(text)+len(after) > hostileSize {
			break
		}
		out.WriteString(text)
	}
	return out.String() + after
}

// nest repeats two pieces around a middle, n times.
func nest(n int, before, middle, after string) string {
	return strings.Repeat(before, n) + middle + strings.Repeat(after, n)
}

// hostileScripts are texts of up to 64 KiB made to cost work: each part of the
// analysis, and of the decision, has one that goes for it.
func hostileScripts() map[string]string {
	out := plainShapes()
	maps.Copy(out, furtherShapes())
	maps.Copy(out, costlyShapes())
	return out
}

// plainShapes repeat one thing.
func plainShapes() map[string]string {
	half := strings.Repeat("a/", hostileSize/4)
	wide := fill("", "a ", "")
	return map[string]string{
		"commands":          fill("", "a;", ""),
		"known commands":    fill("", "ls x%d;", ""),
		"pipes":             fill("a", "|a", ""),
		"ands":              fill("a", "&&a", ""),
		"background":        fill("", "a&", ""),
		"subshells":         fill("", "(a);", ""),
		"nested subshells":  nest(90, "(", "a", ")"),
		"deep subshells":    nest(20000, "(", "a", ")"),
		"nested quotes":     nest(45, `"$(echo `, "a", `)"`),
		"find in find":      fill("find . ", "-exec find . ", `\;`),
		"short find":        fill("find", " -exec find", ""),
		"find and commands": fill("find . ", `-exec a %d \; `, ""),
		"wrappers":          fill("", "env ", "a"),
		"timeouts":          fill("", "timeout 9 ", "a"),
		"xargs":             fill("a | ", "xargs ", "a"),
		"xargs -I":          fill("a | ", "xargs -I% ", "%"),
		"command":           fill("", "command ", "a"),
		"eval":              fill("", "eval ", "a"),
		"eval texts":        fill("", "eval 'a;a;a;a;a';", ""),
		"shells":            fill("", "bash -c 'a;a;a;a';", ""),
		"shell args":        "bash -c 'a $1 $2 $3 $@' " + strings.TrimSuffix(wide[:60000], " "),
		"variable":          "x=" + strings.Repeat("y", 32<<10) + ";" + fill("", "a $x;", "")[:32000],
		"variable as words": "x='" + strings.Repeat("y ", 16<<10) + "';" + fill("", "a $x;", "")[:32000],
		"variable in words": "x=" + strings.Repeat("y", 32<<10) + ";a " + fill("", "$x ", "")[:32000],
		"variable quoted":   "x=" + strings.Repeat("y", 32<<10) + ";a " + fill("", "\"$x\" ", "")[:32000],
		"doubling":          fill("x=aaaaaaaa;", "x=$x$x;", "echo $x"),
		"appending":         fill("", "x+=aaaaaaaa;", "echo $x"),
		"variables":         fill("", "v%d=a;", ""),
		"copied variables":  fill("", "v%d=a;", "")[:32000] + fill("", "(a);", "")[:32000],
		"loops":             nest(14, "for i in 1 2 3 4 5 6 7 8 9; do ", "a $i", "; done"),
		"long loop":         "for i in " + fill("", "%d ", "")[:30000] + ";do " + fill("", "a $i;", "")[:30000] + "done",
		"whiles":            nest(20, "while a; do cd x; ", "a", "; done"),
		"functions":         functions(30),
		"many functions":    fill("", "f%d(){ a;};", ""),
		"function calls":    "f(){ a;a;a;a;a;a;a;a;};" + fill("", "f;", "")[:60000],
		"ifs":               fill("if a; then a; ", "elif a; then a; ", "fi"),
		"case":              fill("case x in ", "a) x=1;; ", "esac"),
		"case falls":        fill("case x in ", "a) x=1;;& ", "esac"),
		"braces":            fill("a ", "{a,b}", ""),
		"brace words":       fill("a ", "{a,b}{c,d}{e,f}{g,h} ", ""),
		"brace sequence":    fill("a ", "{1..200} ", ""),
		"nested braces":     "a " + nest(90, "{a,", "b", "}"),
		"open braces":       fill("a ", "{", ""),
		"one word":          fill("a ", "a", ""),
		"words":             wide,
		"flags":             fill("rm ", "-a ", ""),
		"sudo":              fill("sudo ", "a ", ""),
		"sudo flags":        fill("sudo ", "-a ", ""),
		"sudo text":         "sudo '" + strings.Repeat("rm -r ", 10000) + "'",
		"sudo texts":        fill("sudo ", "'a b' ", ""),
		"git":               fill("git ", "-C . ", "status"),
		"git -c":            fill("git ", "-c color.ui=a ", "status"),
		"unknown words":     fill("a ", "$(a) ", ""),
		"unknown flags":     fill("rm ", "$x$1 ", ""),
		"stars":             fill("a ", "*", ""),
		"globs":             fill("cat ", "*a%d ", ""),
		"star paths":        fill("cat ", "*/", ""),
		"files":             fill("cat ", "f%d ", ""),
		"missing files":     fill("cat ", "n/%d/x ", ""),
		"deep path":         "cat " + half,
		"deep paths":        fill("cat ", "a/b/c/d/e/f/g/h/i/j/k/%d ", ""),
		"unknown paths":     fill("frobnicate ", "a/b/c/d%d ", ""),
		"dots":              fill("cat ", "../", "x"),
		"links":             fill("cat ", "inside/../", "x"),
		"folders":           fill("", "cd a%d;", "cat x"),
		"folders and files": fill("cd a;cd b;cd c;cat ", "n%d ", ""),
		"either folder":     fill("", "cd a || cd b; cat x%d;", ""),
		"redirections":      fill("a ", ">f%d ", ""),
		"here-documents":    fill("", "a <<E\n$x $(a)\nE\n", ""),
		"here-strings":      fill("a ", "<<<$x ", ""),
		"substitutions":     fill("a ", "`a` ", ""),
		"process subst":     fill("a ", "<(a) ", ""),
		"arithmetic":        fill("((", "1+", "1))"),
		"nested arithmetic": nest(45, "$((", "1", "))"),
		"tests":             fill("[[ a", " && a", " ]]"),
		"array":             fill("x=(", "a ", ")"),
		"array elements":    fill("", "x[1]=a;", ""),
		"assignments":       fill("", "A%d=a ", "a"),
		"exports":           fill("export ", "A%d=a ", ""),
		"sed":               fill("sed '", "s/a/b/;", "' x"),
		"sed flags":         fill("sed ", "-e p ", "x"),
		"awk":               fill("awk '", "{print}", "' x"),
		"tar":               fill("tar xf ", "a%d ", ""),
		"curl":              fill("curl ", "http://h%d.test ", ""),
		"urls":              fill("curl http://", "a.", "test"),
		"escapes":           fill("a ", `\a`, ""),
		"quoted":            fill("a ", `"a"'b'`, ""),
		"ansi":              fill("a $'", `\x41`, "'"),
		"tildes":            fill("a ", "~/%d ", ""),
		"parameters":        fill("a ", "${x:-a}", ""),
		"nested parameters": "a " + nest(90, "${x:-", "a", "}"),
		"expansions":        fill("a ", "${x/a/b} ", ""),
		"traps":             fill("", "trap 'a;a;a' EXIT;", ""),
		"extended globs":    fill("a ", "@(a|b)", ""),
		"comments":          fill("", "#a\n", "a"),
		"blank":             fill("", " ", "a"),
		"lines":             fill("", "\n", "a"),
		"unclosed":          fill("a '", "b", ""),
		"unclosed parens":   fill("", "$(", ""),
		"coproc":            fill("", "coproc a;", ""),
		"shift":             fill("set -- a;", "shift;", ""),
		"dd":                fill("dd ", "if=a%d ", ""),
		"cp":                fill("cp -r ", "a%d ", "d"),
		"rm -rf":            fill("rm -rf ", "d%d/ ", ""),
	}
}

// functions makes functions of which each calls the one before it twice.
func functions(n int) string {
	out := "f0(){ a; };"
	for i := range n {
		out += fmt.Sprintf("f%d(){ f%d;f%d; };", i+1, i, i)
	}
	return out + fmt.Sprintf("f%d", n)
}
