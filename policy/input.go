package policy

import (
	"slices"
	"strings"
)

// Code may come from a file that is no file: standard input, another descriptor, or
// a process substitution. No rule sees what it holds.

// inputNames are the names of open files, each exact or a beginning that ends in "/".
var inputNames = []string{"/dev/stdin", "/dev/fd/", "/proc/self/fd/", "/proc/thread-self/fd/"}

// codeReaders take code from any file that they are given, and from "-".
const codeReaders = " make gmake bmake ninja cmake ctest just rake ant mvn gradle scons task bazel nix-build nix-shell gdb lldb " +
	"vim vi nvim view ex emacs psql mysql mariadb sqlite3 duckdb dc bc gnuplot octave expect parallel ansible-playbook ansible puppet screen tmux R Rscript " +
	"source . m4 at batch crontab ed "

// scriptRunners run the file that is their first operand, and no other operand.
const scriptRunners = " python python2 python3 pypy pypy3 node nodejs deno bun ts-node tsx perl ruby php lua luajit julia tclsh wish guile racket elixir erl escript " +
	"scala groovy clojure runghc ghci ocaml swift irb ipython bash sh dash zsh ksh fish csh tcsh pwsh nu elvish xonsh osascript "

// settingFlags lists flags of other programs that read settings, or an order to
// build, from "-".
var settingFlags = map[string]string{"curl": "-K --config", "wget": "-i --input-file --config", "docker": "-f --file build", "podman": "-f --file build"}

// inputRunners lists programs that run their standard input unless they are given
// one of these words, or, for a number, as many operands.
var inputRunners = map[string]string{
	"psql": "-f --file -c --command -l --list --version -V --help -?", "mysql": "-e --execute --version -V --help -?", "mariadb": "-e --execute --version -V --help -?",
	"sqlite3": "2", "duckdb": "2", "parallel": "::: :::: ::::+ -a --arg-file --version --help", "dc": "1 -e -f", "octave": "1 --eval", "gnuplot": "1 -e", "julia": "1 -e -E", "R": "-f -e --version",
	"Rscript": "1 -e", "irb": "1", "ipython": "1 -c", "ghci": "1 -e", "tclsh": "1", "wish": "1", "luajit": "1 -e", "guile": "1 -c", "racket": "1 -e", "pypy": "1", "pypy3": "1", "pwsh": "1 -c", "nu": "1 -c", "elvish": "1 -c", "xonsh": "1 -c",
	"script": "-c --command --version", "su": "-c --command --version", "newgrp": "2", "osascript": "1 -e", "iex": "1", "jshell": "1", "ocaml": "1", "scala": "1", "gdb": "-batch --batch --version",
}

// takesInput reports whether a command takes code, or settings that may name some,
// from an open file that its words name, or from its standard input.
func takesInput(argv []Word) bool {
	name := interpreterName(baseName(argv[0].Text))
	if runsInput(name, argv[1:]) {
		return true
	}
	reader, script := runsFiles(name)
	_, described := unsafeFlags[name]
	known := described || globalOptions[name] != "" || table().knows(name)
	unsafe := unsafeIn(argv)
	for i, w := range argv[1:] {
		flag := i > 0 && unsafe(i) && strings.HasPrefix(argv[i].Text, "-") // the word before
		switch {
		case reader && (w == Word{Dynamic: true} || namesDash(w.Text)), mayNameInput(w) && (reader || script || !known || flag || unsafe(i+1)):
			return true
		case namesDash(w.Text) && i > 0 && isField(settingFlags[name], argv[i].Text):
			return true
		case script && !flag && w.Text != "" && w.Text[0] != '-':
			return false // what follows belongs to the script
		}
	}
	return false
}

// runsFiles reports whether a program takes code from files: any, or its script.
func runsFiles(name string) (reader, script bool) {
	return strings.Contains(codeReaders, " "+name+" "), strings.Contains(scriptRunners, " "+name+" ")
}

// runsInput reports whether a program runs its standard input with these words.
func runsInput(name string, words []Word) bool {
	list, runs := inputRunners[name]
	if !runs {
		return false
	}
	if slices.ContainsFunc(words, func(w Word) bool { return !w.Dynamic && isField(list, w.Text) && !isNumber(w.Text) }) {
		return false
	}
	enough := 0
	if n := strings.IndexAny(list, "12"); n == 0 {
		enough = int(list[0] - '0')
	}
	return enough == 0 || len(operandsOf(words)) < enough
}

// interpreterName returns the name of an interpreter without its version: python3.12.
func interpreterName(name string) string {
	base := strings.TrimRight(name, "0123456789.")
	if len(base) < len(name) && strings.Contains(scriptRunners, " "+base+" ") && inlineCode[name] == "" {
		return base
	}
	return name
}

// namesDash reports whether a word is "-", or a flag with that as its value.
func namesDash(text string) bool {
	return text == "-" || strings.HasSuffix(text, "=-") || len(text) == 3 && text[0] == '-' && text[1] != '-' && text[2] == '-'
}

// mayNameInput reports whether a word is, or ends in, the name of an open file, or
// may become one.
func mayNameInput(w Word) bool {
	for _, name := range inputNames {
		i := strings.Index(w.Text, name)
		switch {
		case i >= 0 && (i == 0 || w.Text[i-1] != '/') && (strings.HasSuffix(name, "/") || w.Text[i:] == name || w.Dynamic):
			return true
		case w.Dynamic && len(w.Text) > len("/d") && strings.HasPrefix(name, w.Text[max(strings.LastIndexByte(w.Text, '='), 0):]):
			return true
		}
	}
	return false
}

// TakesCode reports whether a command carries code that no rule sees: in its words,
// or from its standard input. It is safe for concurrent use.
func TakesCode(argv []Word) bool {
	return len(argv) > 0 && !argv[0].Dynamic && isInlineCode(argv)
}
