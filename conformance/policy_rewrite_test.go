//go:build linux

package conformance

import (
	"fmt"
	"iter"
	"os"
	"regexp"
	"strings"
	"testing"
)

// fewestRewrites is how many other spellings each command is tried in, at least.
const fewestRewrites = 20

// TestNoSpellingOfACommandIsMorePermissive writes every command of the cases that
// is not allowed in other ways that mean the same. None of them is allowed either.
// With -short it takes a few of the commands.
func TestNoSpellingOfACommandIsMorePermissive(t *testing.T) {
	t.Parallel()
	runner := startPolicyRunner(t)
	cases, err := readPolicyCases(runner.fixtureDirs, namedFiles("TOOLD_CASES_POLICY", "policy.jsonl")...)
	if err != nil {
		t.Fatal(err)
	}
	commands, spellings, fewest := 0, 0, len(wholeRewrites)+len(nameRewrites)
	for l := range sampled(cases) {
		command, ok := l.c.Arguments["command"].(string)
		if l.err != nil || l.c.Tool != "bash" || !ok {
			continue
		}
		d, _ := runner.run(t.Context(), l)
		if d.Action == "allow" {
			continue
		}
		commands++
		others := rewrites(command)
		fewest = min(fewest, len(others))
		for name, text := range others {
			spellings++
			l.c.Arguments = map[string]any{"command": text}
			if other, _ := runner.run(t.Context(), l); other.Action == "allow" {
				t.Errorf("%s under %s, %s: %q is %s, but %q is allowed", l.c.ID, l.c.Policy, name, command, d.Action, text)
			}
		}
	}
	t.Logf("%d commands that are not allowed, in %d other spellings, %d to %d of each", commands, spellings, fewest, len(wholeRewrites)+len(nameRewrites))
	if fewest < fewestRewrites {
		t.Errorf("a command has %d other spellings, want %d", fewest, fewestRewrites)
	}
}

// sampled yields one policy case in 24, and every case with TOOLD_POLICY_CASES=all.
func sampled(cases []policyLine) iter.Seq[policyLine] {
	step := 24
	if os.Getenv("TOOLD_POLICY_CASES") == "all" {
		step = 1
	}
	return func(yield func(policyLine) bool) {
		for i := 0; i < len(cases) && yield(cases[i]); i += step {
		}
	}
}

// wholeRewrites are shells' ways to write any command; the line break before what
// closes them ends a comment or a here-document. %s is the command, %q the same in
// single quotes.
var wholeRewrites = []string{
	"{ %s\n}", "(%s\n)", "true && { %s\n}", "false || { %s\n}", "! { %s\n}", "if true; then %s\nfi",
	"if false; then :; else %s\nfi", "for i in 1; do %s\ndone", "while :; do %s\nbreak; done", "until %s\ndo break; done",
	"case x in x) %s\n;; esac", "f() { %s\n}; f", "f() { eval %q; }; f", "time { %s\n}", ": ; %s", "%s\n:", "v=1; %s", "{ %s\n} | cat",
	"{ %s\n} & wait", "{ %s\n} 2>/dev/null", ": \"$(%s\n)\"", "cat <(%s\n)", "eval %q", "x=%q; eval \"$x\"", "trap %q EXIT",
	"bash -c %q", "env bash -c %q", "timeout 60 bash -c %q", "command bash -c %q", "exec bash -c %q", "nohup bash -c %q",
	"x=%q; bash -c \"$x\"", "bash -c \"bash -c \\\"\\$1\\\" _ \\\"\\$1\\\"\" _ %q", "bash <<< %q", "echo a | { %s\n}",
}

// nameRewrites are ways to write the program of a simple command: %n is its name,
// %a and %b its beginning and its rest, %x its first letter in hexadecimal.
var nameRewrites = []string{
	"'%n'", `"%n"`, `\%n`, `%a""%b`, `%a''%b`, `%a\%b`, "$'%n'", `$'\x%x'%b`, "%a\\\n%b", "command %n", "command -- %n", "exec %n",
	"env %n", "env -- %n", "env A=1 %n", "nice %n", "nice -n 5 %n", "timeout 60 %n", "timeout -s KILL 60 %n", "nohup %n", "setsid %n", "stdbuf -o0 %n",
	"time %n", "x=%n; $x", `x=%n; "${x}"`, "x=%a; ${x}%b", "${nothing}%n", "%a${nothing}%b", "$(echo %n)", "`echo %n`", "{%n,}", "/usr/bin/%n",
	"/bin/../bin/%n", "  %n", "\t%n", "A=1 %n", "env nice timeout 60 %n", "xargs %n", "find . -maxdepth 0 -exec env %n",
}

// simple is the name of a program at the beginning of a command.
var simple = regexp.MustCompile(`^[a-z][a-z0-9-]+(?:[ \t]|$)`)

// notPrograms are words of the shell: a rewrite of their names would mean
// something else.
const notPrograms = " if for while until case function time coproc select then do done fi esac in " +
	"cd export declare typeset local readonly set unset shopt source eval exec command builtin trap alias read mapfile readarray printf test let enable pushd popd umask ulimit wait jobs bg fg kill hash type exit return break continue shift getopts true false echo "

// rewrites returns other spellings of a command, by what was done to it.
func rewrites(command string) map[string]string {
	quoted := "'" + strings.ReplaceAll(command, "'", `'\''`) + "'"
	out := map[string]string{}
	for _, r := range wholeRewrites {
		out[r] = strings.NewReplacer("%s", command, "%q", quoted).Replace(r)
	}
	name := strings.TrimSpace(simple.FindString(command))
	if name == "" || strings.Contains(notPrograms, " "+name+" ") {
		return out
	}
	spelled := strings.NewReplacer("%n", name, "%a", name[:1], "%b", name[1:], "%x", fmt.Sprintf("%02x", name[0]))
	for _, r := range nameRewrites {
		out[r] = spelled.Replace(r) + command[len(name):]
	}
	return out
}
