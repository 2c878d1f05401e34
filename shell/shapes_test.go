package shell

import (
	"fmt"
	"strings"
)

// furtherShapes are the wrappers one by one, texts inside texts, and what only
// looks like a script.
func furtherShapes() map[string]string {
	out := map[string]string{
		"mixed wrappers":       fill("", "env nice -n 5 timeout 9 nohup setsid stdbuf -o0 command exec ", "a"),
		"find and wrappers":    fill("find . ", `-exec env nice timeout 9 a {} \; `, ""),
		"find and shells":      fill("find . ", `-exec sh -c 'a;a;a' \; `, ""),
		"execdir":              fill("find . ", `-execdir a {} + `, ""),
		"find roots":           fill("find ", "d%d ", "-name x"),
		"find tests":           fill("find . ", "-name x%d -o ", "-print"),
		"xargs in pipes":       fill("a ", "|xargs -n1 a ", ""),
		"xargs shells":         fill("", "a|xargs sh -c 'a $1' _;", ""),
		"shells in shells":     shellsInShells("a"),
		"eval in eval":         evals(9, "a;a;a;a"),
		"eval of a list":       "eval '" + strings.Repeat("a;", 16<<10) + "'",
		"trap of a list":       "trap '" + strings.Repeat("a;", 16<<10) + "' EXIT",
		"traps and folders":    fill("", "trap 'cd x' EXIT;cd y;", "a"),
		"shell of a list":      "bash -c '" + strings.Repeat("a;", 16<<10) + "'",
		"shell of many words":  "bash -c 'for i; do a $i; done' " + fill("", "w%d ", "")[:60000],
		"function arguments":   "f(){ a $@ $1 $2;};" + fill("", "f b c;", "")[:60000],
		"functions in a ring":  ring(200),
		"redefined functions":  fill("", "f(){ a;};f;", ""),
		"nested functions":     nest(45, "f(){ ", "a", ";};"),
		"aliases":              fill("", "alias a%d=b;", "a1"),
		"cases":                fill("", "case x in a|b) a;; esac;", ""),
		"nested cases":         nest(50, "case x in x) ", "a", ";; esac"),
		"case patterns":        fill("case x in ", "a%d|", "b) a;; esac"),
		"nested ifs":           nest(55, "if a; then ", "a", "; fi"),
		"nested whiles":        nest(50, "while a; do ", "a", "; done"),
		"untils":               fill("", "until a; do a; done;", ""),
		"numeric loops":        fill("", "for ((i=0;i<9;i++)); do a $i; done;", ""),
		"loops and folders":    fill("", "for i in 1 2 3; do cd x$i; cat y; done;", ""),
		"loops of many words":  fill("", "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do a; done;", ""),
		"times":                fill("", "time ", "a"),
		"bangs":                fill("", "! ", "a"),
		"blocks":               fill("", "{ a;};", ""),
		"nested blocks":        nest(59, "{ ", "a", ";}"),
		"background blocks":    fill("", "(a)&", ""),
		"pipes of subshells":   fill("(a)", "|(a)", ""),
		"pipes of whiles":      fill("a", "|while a; do a; done", ""),
		"ors":                  fill("a", "||a", ""),
		"ands and folders":     fill("a", "&&cd x%d", "&&cat y"),
		"ors and folders":      fill("a", "||cd x%d", ";cat y"),
		"deep double quotes":   nest(40, `"${x:-`, "a", `}"`),
		"quotes one by one":    fill("a ", `'a'"b"\c$'d'`, ""),
		"escaped blanks":       fill("a ", `\ `, "x"),
		"backquotes":           fill("", "`a`;", ""),
		"quoted substitutions": fill(`a "`, "$(a)", `"`),
		"here-documents, long": "cat <<E\n" + fill("", "$x ${y} $(a)\n", "")[:60000] + "\nE",
		"here-documents, many": fill("cat ", "<<E%d ", ""),
		"here-strings, nested": nest(50, "a <<<$(", "a", ")"),
		"process in process":   nest(55, "a <(", "a", ")"),
		"output processes":     fill("a ", "> >(a) ", ""),
		"all redirections":     fill("a ", "<f%d >g%d 2>>h%d <>i%d &>j%d >|k%d 2>&1 ", ""),
		"descriptors":          fill("a ", "3>&1 ", ""),
		"named descriptors":    fill("a ", "{fd}>x ", ""),
		"array of words":       "x=(" + fill("", "w%d ", "")[:60000] + ");a ${x[@]}",
		"array indexes":        fill("x=(", "[%d]=a ", ")"),
		"array expansions":     fill("a ", "${x[1]} ", ""),
		"slices":               fill("a ", "${x:1:2} ", ""),
		"indirect":             fill("a ", "${!x} ", ""),
		"transformed":          fill("a ", "${x@Q} ", ""),
		"lengths":              fill("a ", "${#x} ", ""),
		"replacements":         "x=" + strings.Repeat("y", 20000) + fill(";a ", "${x//y/z} ", "")[:40000],
		"arithmetic variables": fill("((", "x=", "1))"),
		"arithmetic words":     fill("a ", "$((x+1)) ", ""),
		"arithmetic commas":    fill("((1", ",x++", "))"),
		"lets":                 fill("let ", "x=1 ", ""),
		"braces of variables":  fill("a ", "{$x,$y}", ""),
		"braces of globs":      fill("a ", "{*,?}x%d ", ""),
		"brace and commas":     "a {" + fill("", "b,", "b}")[:60000],
		"globs in folders":     fill("cat ", "*/x%d ", ""),
		"globs of brackets":    fill("cat ", "[a-z]%d* ", ""),
		"open brackets":        fill("cat ", "[", ""),
		"long name":            "a" + strings.Repeat("b", hostileSize-10),
		"long path":            "cat /" + strings.Repeat("b", hostileSize-10),
		"long flag":            "ls --" + strings.Repeat("b", hostileSize-10),
		"long number":          "head -n " + strings.Repeat("9", hostileSize-10),
		"long variable":        strings.Repeat("v", 30000) + "=a;a $" + strings.Repeat("v", 30000),
		"long here mark":       "cat <<" + strings.Repeat("E", 20000) + "\nx\n" + strings.Repeat("E", 20000),
		"invalid UTF-8":        fill("a ", "\xff", ""),
		"invalid words":        fill("a ", "\xff\xfe%d ", ""),
		"carriage returns":     fill("", "a\r\n", ""),
		"NULs":                 fill("a", "\x00", ""),
		"zero width":           fill("a ", "\u200b", "b"),
		"continuations":        fill("a ", "\\\n", "b"),
		"spaced continuations": fill("a", " \\\n b", ""),
		"hashes":               fill("a ", "#", ""),
		"semicolons":           fill("a", ";;", ""),
		"brackets closed":      fill("a", ")", ""),
		"unclosed quotes":      fill("a ", `"$(`, ""),
		"unclosed braces":      fill("a ", "${", ""),
		"unclosed loops":       fill("", "while a; do ", ""),
		"unclosed cases":       fill("", "case a in b) ", ""),
		"pushd":                fill("", "pushd x;popd;", "a"),
		"reads":                fill("", "read x%d;", "a $x1"),
		"unsets":               fill("", "unset x%d;", "a"),
		"printf -v":            fill("", "printf -v x%d a;", "a $x1"),
		"declares":             fill("", "declare x%d=a;", "a $x1"),
		"locals":               "f(){ " + fill("", "local x%d=a;", "")[:60000] + "};f",
		"sources":              fill("", ". ./x%d;", ""),
		"git in folders":       fill("", "git -C d%d status;", ""),
		"git and flags":        fill("git log ", "--stat ", ""),
		"git and settings":     fill("git ", "-c a.b%d=c ", "status"),
		"ssh":                  fill("ssh h ", "a ", ""),
		"docker":               fill("docker run ", "-v /a%d:/b ", "image sh"),
		"node":                 fill("node ", "-r ./x%d ", "x.js"),
		"awk files":            fill("awk '{print}' ", "f%d ", ""),
		"sed files":            fill("sed -i s/a/b/ ", "f%d ", ""),
		"mv":                   fill("mv ", "f%d ", "d"),
		"tee":                  fill("tee ", "f%d ", ""),
		"chmod":                fill("chmod -R 700 ", "d%d ", ""),
		"find -fprint":         fill("find . ", "-fprint f%d ", ""),
		"tests of files":       fill("[[ -e x ", "&& -e f%d ", "]]"),
		"test":                 fill("", "test -e f%d;", ""),
		"sockets":              fill("", "a >/dev/tcp/h%d.test/80;", ""),
		"wgets":                fill("", "wget http://h%d.test;", ""),
		"equal signs":          fill("a ", "x=y=z/%d ", ""),
		"tildes of users":      fill("a ", "~u%d ", ""),
		"proc links":           fill("cat ", "/proc/self/root/%d ", ""),
		"deep folder":          fill("cd "+strings.Repeat("a/", 1000)+";cat ", "x%d/y ", ""),
		"long paths":           fill("cat ", strings.Repeat("a/", 1900)+"%d ", ""),
		"braces and parts":     "a " + strings.Repeat("{a,b}", 8) + fill("", "'a'", "")[:60000],
		"braces and words":     "a " + fill("", "{a,b}'c'{d,e}$x ", "")[:60000],
		"links made":           fill("", "ln -s a b%d;", "cat b1"),
		"links moved":          fill("", "ln -s a b%d;mv b%d c%d;cat c%d;", ""),
		"pipes of names":       fill("find a", "|find b%d|xargs cat", ""),
		"ends with packages":   fill("a ", "shift  npx  ", ""),
		"ends with containers": fill("a ", "docker run -v a%d:/b  ", ""),
		"ends with npm":        fill("a ", "npm run i ", ""),
		"ends with kubectl":    fill("a ", "kubectl get po ", ""),
		"ends that match":      fill("nice ", "push nice -n 5 ", ""),
		"deep folder, docker":  fill("cd "+strings.Repeat("a/", 900)+";", "docker run -v a%d:/b ", ""),
		"link chains":          fill("cat ", "inside/../inside/../%d ", ""),
	}
	for _, name := range []string{"nice", "nice -n 5", "ionice -c 3", "nohup", "setsid", "stdbuf -o0", "time -p", "exec", "builtin", "timeout -s KILL 9", "env -i A=1", "env -u X", "xargs -n 1", "sudo", "strace", "bash -c", "sh -ec"} {
		out["many: "+name] = fill("", name+" ", "a")
		out["list: "+name] = fill("", name+" a %d;", "")
	}
	return out
}

// shellsInShells puts shells into shells, as deep as the quoting lets it.
func shellsInShells(inner string) string {
	for next := inner; len(next) < hostileSize; next = "bash -c '" + strings.ReplaceAll(inner, "'", `'\''`) + "'" {
		inner = next
	}
	return inner
}

// evals puts evals of lists into each other.
func evals(n int, inner string) string {
	for range n {
		quoted := "'" + strings.ReplaceAll(inner, "'", `'\''`) + "'"
		if next := "eval " + quoted + ";eval " + quoted; len(next) < hostileSize {
			inner = next
		}
	}
	return inner
}

// ring makes functions that each call the next, and the last the first.
func ring(n int) string {
	var out strings.Builder
	for i := range n {
		fmt.Fprintf(&out, "f%d(){ f%d; a; };", i, (i+1)%n)
	}
	return out.String() + "f0"
}
