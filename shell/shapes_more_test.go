package shell

import (
	"fmt"
	"strings"
)

// costlyShapes go for what once grew with the square of the text, or was not
// counted: copies of what is known, alternatives of patterns, parents of folders,
// targets of links, ends of commands.
func costlyShapes() map[string]string {
	deep := "cd " + strings.Repeat("a/", 500) + ";"
	braces := strings.Repeat("{a,b}", 8)
	out := map[string]string{
		"git, deep":              fill(deep, "git status;", ""),
		"git, deep and wide":     fill(deep, "cd %d; git status; cd ..;", ""),
		"globs of braces":        fill("rg ", "-g '"+braces+"' ", "x"),
		"long glob of braces":    "rg -g '" + braces + strings.Repeat("x", 60000) + "' x",
		"glob of braces, many":   fill("rg -g '"+braces+"' x ", "d%d ", ""),
		"names, many":            fill("find ", "d%d ", "")[:40000] + fill("", ` -name *.x%d -exec a {} \;`, "")[:20000],
		"links, many targets":    fill("ln -s ", "a%d ", "d"),
		"links, in a folder":     fill("ln -s -t d ", "a%d ", ""),
		"links, in folders":      fill("ln -s a ", "-t d%d ", ""),
		"glob runs words":        fill("/*/* ", "w%d ", ""),
		"functions and loops":    fill("", "f%d(){ x%d=1;};", "")[:30000] + fill("", "while a; do b; done;", "")[:30000],
		"function chain":         functionChain(2000) + "f0",
		"packages with versions": fill("a ", "npx x@%d ", ""),
		"packages, unknown flag": fill("a ", "npm --x%d y ", "run x"),
		"packages":               fill("a ", "npx -p x%d ", ""),
		"scripts":                fill("", "npm run b%d;", ""),
		"texts of commands":      fill("a ", "'npm run x%d' ", ""),
		"kinds of objects":       fill("a ", "kubectl get po,svc,cm,deploy,ns ", "x"),
		"modules":                fill("a ", "python -m ", ""),
		"versions":               fill("a ", "rm@%d ", ""),
		"flags in between":       fill("a ", "rm -x%d -r ", ""),
		"unknown in between":     fill("a ", "npm $x ", ""),
		"unknown flags between":  fill("a ", "git -$x ", ""),
		"lone dollars":           fill("a ", "$ ", ""),
		"trees of repositories":  fill("rm -r ", ".git/modules/.git/modules/%d ", ""),
		"lists of URLs":          "a " + strings.Repeat(",a://", 12000),
		"marks of URLs":          "a " + strings.Repeat("://", 20000),
		"URLs in prose":          "a 'x " + strings.Repeat("a://b", 12000) + " '",
		"plain document":         "cat > x <<'E'\n" + fill("", "some line of text %d\n", "")[:65000] + "E",
		"document of arithmetic": "cat > x <<E\n" + fill("", "$((1+%d))", "")[:64000] + "\nE",
		"alias chain":            fill("", "alias a%d=b;", "a1"),
		"process in a pipe":      nest(45, "(a|", "b", ")"),
		"tests of numbers":       fill("[[ 1 -eq 1 ", "&& x%d -eq 1 ", "]]"),
		"evals of a variable":    fill("x='a;b;c';", `eval "$x";`, ""),
	}
	var known strings.Builder
	for i := range 250 {
		fmt.Fprintf(&known, "v%d=a;f%d(){ x%d=1;y;};", i, i, i)
	}
	for name, shape := range map[string][3]string{
		"patterns":      {"case x in ", "$y|", "b) a;; esac"},
		"branches":      {"case x in ", "b) ;; ", "esac"},
		"falling":       {"case x in ", "a) x=1;;& ", "esac"},
		"substitutions": {"a ", "$()", ""},
		"processes":     {"a ", "<(a) ", ""},
		"loops":         {"", "for i in a b c; do a; done;", ""},
		"loop":          {"while a; do while b; do while c; do while d; do ", "e;", "done; done; done; done"},
		"shells":        {"", "sh -c a;", ""},
		"traps":         {"", "trap a EXIT;", ""},
		"calls":         {"", "f1;", ""},
		"ands":          {"a", "&&a", ""},
		"redirections":  {"", "a <f;", ""},
	} {
		out["much is known: "+name] = fill(known.String()+shape[0], shape[1], shape[2])
	}
	return out
}

// functionChain makes functions that each call the next.
func functionChain(n int) string {
	var out strings.Builder
	for i := range n {
		fmt.Fprintf(&out, "f%d(){ f%d; };", i, i+1)
	}
	return out.String()
}
