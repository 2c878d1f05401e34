package shell

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
)

// hostileScripts are texts of up to 64 KiB that are costly for one part of the analysis or the
// decision each.
func hostileScripts(t testing.TB) map[string]string {
	out := wrapperShapes()
	for _, c := range cases(t, "shapes.txt") {
		name, parts, _ := strings.Cut(c.text, ": ")
		out[name] = shape(t, parts)
	}
	choice := "if [ -f a ]; then x=a; elif [ -f b ]; then x=b; elif [ -f c ]; then x=c; else x=d; fi; "
	deep, braces := strings.Repeat("a/", 500), strings.Repeat("{a,b}", 8)
	for name, text := range map[string]string{
		"shell args":           "bash -c 'a $1 $2 $3 $@' " + strings.TrimSuffix(strings.Repeat("a ", 30000), " "),
		"functions":            functions(30),
		"shells in shells":     shellsInShells("a"),
		"eval in eval":         evals(9, "a;a;a;a"),
		"functions in a ring":  chain(200, 0, " a;"),
		"function chain":       chain(2000, 2000, ""),
		"deep folder":          fill("cd "+deep+deep+";cat ", "x%d/y ", ""),
		"long paths":           fill("cat ", strings.Repeat("a/", 1900)+"%d ", ""),
		"deep folder, docker":  fill("cd "+strings.Repeat("a/", 900)+";", "docker run -v a%d:/b ", ""),
		"git, deep":            fill("cd "+deep+";", "git status;", ""),
		"git, deep and wide":   fill("cd "+deep+";", "cd %d; git status; cd ..;", ""),
		"globs of braces":      fill("rg ", "-g '"+braces+"' ", "x"),
		"long glob of braces":  "rg -g '" + braces + strings.Repeat("x", 60000) + "' x",
		"choices":              choice + "a" + strings.Repeat(" $x", 20000),
		"choices, many":        fill(choice, "a $x $x%d $x $x; ", ""),
		"choices of programs":  fill(choice, "$x $x $x > $x; ", ""),
		"choices in functions": choice + "f() { a $1 $2 $3; a $3 $2 $1; }; g() { f $1 $2 $x; f $x $1 $2; }; " + strings.Repeat("g $x $x; ", 5000),
		"choices of parts":     fill(choice, "a x$x y$x$x \"$x z $x\" > $x/$x; ", ""),
		"choices in evals":     fill(choice+"y=\"eval eval $x $x\"; ", "z=\"$y $x\"; eval \"$y $x\" \"$z\"; eval \"eval '$z'\"; ", ""),
		"choices in shells":    fill(choice+"y=\"$x\"; ", "bash -c \"a $x; bash -c 'b $x; c $y'\"; ", ""),
		"edits of a text":      fill("x="+strings.Repeat("ab", 90)+"; ", "echo $x | sed -E \"s/(a|b)*$x/&&&&/g;s/$x//\" | tr a-z b-z | rev | sh;", ""),
		"edits of long texts":  fill("x="+strings.Repeat("ab", 9000)+"; ", "echo $x | sed \"s/$x/&&&&/g\" | tr a-z b-z | rev | sh;", ""),
		"glob of braces, many": fill("rg -g '"+braces+"' x ", "d%d ", ""),
	} {
		out[name] = text
	}
	return out
}

func shape(t testing.TB, parts string) string {
	t.Helper()
	text := func() string {
		quoted, err := strconv.QuotedPrefix(strings.TrimLeft(parts, " "))
		if err != nil {
			t.Fatalf("%s: %v", parts, err)
		}
		parts = strings.TrimLeft(parts, " ")[len(quoted):]
		out, _ := strconv.Unquote(quoted) // QuotedPrefix has checked it
		return out
	}
	done, last := "", ""
	for parts = strings.TrimSpace(parts); parts != ""; parts = strings.TrimSpace(parts) {
		var word, number string
		if parts[0] != '"' {
			word, parts, _ = strings.Cut(parts, " ")
		}
		if word != "" && word != "fill" {
			number, parts, _ = strings.Cut(parts, " ")
		}
		n, _ := strconv.Atoi(number)
		if word == "cut" {
			last = last[:n]
			continue
		}
		switch done += last; word {
		case "fill":
			last = fill(text(), text(), text())
		case "nest":
			last = nest(n, text(), text(), text())
		case "times":
			last = strings.Repeat(text(), n)
		default:
			last = text()
		}
	}
	return done + last
}

func wrapperShapes() map[string]string {
	out := make(map[string]string)
	for _, name := range []string{"nice", "nice -n 5", "ionice -c 3", "nohup", "setsid", "stdbuf -o0", "time -p", "exec", "builtin", "timeout -s KILL 9", "env -i A=1", "env -u X", "xargs -n 1", "sudo", "strace", "bash -c", "sh -ec"} {
		out["many: "+name] = fill("", name+" ", "a")
		out["list: "+name] = fill("", name+" a %d;", "")
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

func functions(n int) string {
	out := "f0(){ a; };"
	for i := range n {
		out += fmt.Sprintf("f%d(){ f%d;f%d; };", i+1, i, i)
	}
	return out + fmt.Sprintf("f%d", n)
}

func shellsInShells(inner string) string {
	for next := inner; len(next) < hostileSize; next = "bash -c '" + strings.ReplaceAll(inner, "'", `'\''`) + "'" {
		inner = next
	}
	return inner
}

func evals(n int, inner string) string {
	for range n {
		quoted := "'" + strings.ReplaceAll(inner, "'", `'\''`) + "'"
		if next := "eval " + quoted + ";eval " + quoted; len(next) < hostileSize {
			inner = next
		}
	}
	return inner
}

func chain(n, last int, body string) string {
	var out strings.Builder
	for i := range n {
		next := i + 1
		if next == n {
			next = last
		}
		fmt.Fprintf(&out, "f%d(){ f%d;%s };", i, next, body)
	}
	return out.String() + "f0"
}
