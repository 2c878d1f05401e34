package policy

import (
	"slices"
	"strings"
)

// unnamed reports whether a command carries code, or a setting that runs some, in
// words that only a wildcard of an allowing rule matched, by their indexes. A
// wildcard is for operands: whoever allows "awk **" allows to print columns, and
// not whatever awk's language can do.
func unnamed(argv []Word, free []int) bool {
	first := func(i int) bool { return slices.Contains(free, i) }
	switch name := baseName(argv[0].Text); name {
	case "sed":
		_, safe, _ := sedUsage(argv[1:])
		return !safe && scriptIn(argv, "", first)
	case "awk", "gawk", "mawk", "nawk":
		_, safe := awkUsage(argv[1:])
		return !safe && scriptIn(argv, "Fv", first)
	case "tar":
		// The first word may be flags without a dash.
		return len(argv) > 1 && first(1) && !strings.HasPrefix(argv[1].Text, "-") && strings.ContainsAny(argv[1].Text, "PIF")
	case "git":
		words := skipGlobals(name, argv[1:])
		if at := len(argv) - len(words); first(at) && setsGit(words) {
			return true
		}
		if at, runs := runsWordsAt(argv); runs {
			return first(at)
		}
	}
	return slices.ContainsFunc(free, func(i int) bool { return i > 0 && isCodeWord(argv, i) })
}

// codeModules are modules of Python that run code in their arguments, or from
// their input.
const codeModules = "timeit code asyncio pdb idlelib cProfile"

// isCodeWord reports whether a word of an interpreter brings code that no rule sees:
// its input under the name of a file, or a module that takes some.
func isCodeWord(argv []Word, i int) bool {
	name, text := baseName(argv[0].Text), argv[i].Text
	if strings.HasPrefix(name, "python") && strings.HasSuffix(argv[i-1].Text, "m") && isField(codeModules, text) {
		return strings.HasPrefix(argv[i-1].Text, "-")
	}
	_, interprets := inlineCode[name]
	reader, script := runsFiles(interpreterName(name))
	return (interprets || reader || script) && (mayNameInput(argv[i]) || strings.HasPrefix(text, "data:"))
}

// scriptIn reports whether the script of a command, or a flag, is one of some
// words. values are the letters of flags whose value is not the script.
func scriptIn(argv []Word, values string, some func(int) bool) bool {
	named := false // the script, by a flag or as the first operand
	for i := 1; i < len(argv); i++ {
		text := argv[i].Text
		flag := len(text) > 1 && text[0] == '-'
		switch {
		case some(i) && (flag || !named || argv[i].Dynamic):
			return true
		case flag && len(text) == 2 && strings.Contains(values, text[1:]):
			i++
		case flag && len(text) == 2 && strings.Contains("fe", text[1:]):
			if i++; some(i) {
				return true
			}
			named = true
		case !flag || text[1] == 'f' || text[1] == 'e':
			named = true
		}
	}
	return false
}

// setsGit reports whether git's configuration is changed in a way that may make it
// run something: what is neither a person, nor a colour, nor a habit.
func setsGit(words []Word) bool {
	if len(words) < 2 || words[0].Text != "config" {
		return false
	}
	var operands []string
	for _, w := range words[1:] {
		switch {
		case w.Dynamic:
			return true
		case strings.HasPrefix(w.Text, "--get") || w.Text == "--list" || w.Text == "-l" || len(operands) == 0 && (w.Text == "get" || w.Text == "list"):
			return false
		case w.Text == "-e" || w.Text == "--edit" || w.Text == "-f" || strings.HasPrefix(w.Text, "--file") || strings.HasPrefix(w.Text, "--blob"):
			return true
		case !strings.HasPrefix(w.Text, "-") && w.Text != "set" && w.Text != "unset":
			operands = append(operands, strings.ToLower(w.Text))
		}
	}
	if len(operands) < 2 {
		return false // it shows a setting, or takes one away
	}
	section, _, _ := strings.Cut(operands[0], ".")
	return !isField("user author committer color advice pull push branch init fetch rebase merge", section) ||
		strings.Contains(operands[0], "template") || strings.Contains(operands[0], "driver") || strings.Contains(operands[0], "remote")
}
