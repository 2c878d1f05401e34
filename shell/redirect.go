package shell

import (
	"path/filepath"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/toold/toold/internal/lazyregexp"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/shell/proc"
	"github.com/toold/toold/shell/programs"
	"github.com/toold/toold/shell/texts"
)

func (w *walker) redirect(r *syntax.Redirect, s *state) {
	if r.N != nil {
		w.descriptor(r)
	}
	first := r.N == nil || r.N.Value == "0"
	here := listed("<< <<-", r.Op.String())
	if here {
		w.endOfDocument(r)
	}
	if r.Hdoc != nil {
		b := &builder{}
		w.doubleQuoted(&syntax.DblQuoted{Parts: r.Hdoc.Parts}, b, s)
		w.feed(b.raw.String(), first, s)
	}
	if r.Word == nil || here {
		return
	}
	wd := w.single(r.Word, s)
	if r.Op == syntax.WordHdoc && wd.text != "" {
		w.feed(wd.text+"\n", first, s)
	}
	if listed("> >> >| &> &>>", r.Op.String()) {
		w.printsTo(wd, r.N, s)
	}
	for _, one := range slices.Concat(wd.alternatives()...) {
		w.target(r.Op, one, s, w.text(r))
	}
}

// printsTo notes what a script writes to a file by descriptor n, which is standard output if nil.
func (w *walker) printsTo(wd word, n *syntax.Lit, s *state) {
	none := wd.is("/dev/null") || wd.is(procSubst)
	if n == nil || n.Value == "1" {
		unsure := !wd.known() && strings.HasPrefix("/dev/", wd.text[:min(len("/dev/"), len(wd.text))])
		s.shown = unsure || !none && strings.Contains(wd.text, "/dev/")
	}
	later := n != nil && n.Value > "2" && !none
	w.saves = w.saves || wd.text == "" || later
}

// descriptor reports descriptors that the shell itself uses.
func (w *walker) descriptor(r *syntax.Redirect) {
	if strings.HasPrefix(r.N.Value, "{") {
		w.opaque("a redirection sets a variable", w.text(r))
	}
	if len(r.N.Value) > 1 && (w.posix || r.N.Value[0] >= '5') {
		w.opaque("bash itself may use this descriptor, for a process substitution, and dash takes it for a word", w.text(r))
	}
}

// endOfDocument checks that bash ends a here-document at the same line: the first that equals its delimiter.
func (w *walker) endOfDocument(r *syntax.Redirect) {
	found := delimiters().FindStringSubmatch(w.text(r.Word))
	ok, body, rest := found != nil, "", ""
	if from := int(r.Word.End().Offset()); r.Hdoc == nil {
		_, rest, _ = strings.Cut(w.source[min(from, len(w.source)):], "\n")
		body, _, _ = strings.Cut(rest, "\n")
		rest = "" // other documents may precede it
		ok = ok && strings.Contains(w.source[min(from, len(w.source)):], "\n")
	} else {
		body = w.text(r.Hdoc)
		rest = w.source[min(int(r.Hdoc.End().Offset()), len(w.source)):]
	}
	lines := strings.Split(body, "\n")
	for i, text := range lines {
		if r.Op == syntax.DashHdoc {
			text = strings.TrimLeft(text, "\t")
		}
		last := i+1 == len(lines)
		ok = ok && (text == strings.Join(found[1:], "")) == last
	}
	if !ok || rest != "" && rest[0] != '\n' {
		w.opaque("bash may end a here-document elsewhere", w.text(r))
	}
}

var delimiters = lazyregexp.New(`^(?:\\?([\w.,:@%+!/-]+)|'([^'\n]*)'|"([^"\n$\\` + "`" + `]*)")$`)

func (w *walker) target(op syntax.RedirOperator, wd word, s *state, source string) {
	if op == syntax.WordHdoc {
		return
	}
	if wd.dynamic && !wd.glob && mayBeSocket(wd.text) {
		// It is reported after the more likely file.
		defer w.add(policy.Effect{Kind: policy.Net, Unknown: wd.text == "", Source: source})
	}
	if wd.text == "" {
		wd.dynamic = true // bash rejects an empty name
	}
	reads, writes := listed("< <>", op.String()), listed("> >> >| &> &>> <>", op.String())
	switch {
	case reads || writes:
	case listed(">& <&", op.String()):
		if !wd.dynamic && descriptor().MatchString(wd.text) {
			return
		}
		if strings.HasPrefix(wd.text, "-") {
			w.opaque("bash ends this redirection after the -", source)
		}
		if writes = op == syntax.DplOut; !writes {
			w.opaque("a descriptor is computed", source)
		}
	default:
		w.opaque("this redirection is not followed", source)
	}
	if reads {
		w.path(programs.Read, wd, s, source)
	}
	if writes {
		w.path(programs.Write, wd, s, source)
	}
}

var descriptor = lazyregexp.New(`^(?:\d+-?|-)$`)

// mayFail reports whether a redirection may fail, so that its command does not run.
func (w *walker) mayFail(redirs []*syntax.Redirect, s *state) bool {
	for _, r := range redirs {
		text := ""
		if r.Word != nil {
			text = r.Word.Lit()
		}
		switch r.Op {
		case syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc:
		case syntax.DplOut, syntax.DplIn:
			if text == "-" {
				s.closed = true
			} else if s.closed || !listed("0 1 2", text) {
				return true
			}
		default:
			if !neutralPaths[text] {
				return true
			}
		}
	}
	return false
}

// fromInput applies deny rules to the known part of code on standard input; the whole is unknown.
func (w *walker) fromInput(s *state, params ...policy.Word) {
	w.scan(w.piping)
	text := s.input + w.otherInput
	if text == "" && w.saved != "" {
		w.scanKept(false) // it may come from a file that the script wrote
	}
	if text == "" {
		return
	}
	w.opaque("a shell runs its standard input", "")
	args := []word{{value: unknown()}}
	for _, a := range params {
		args = append(args, wordOf(a))
	}
	inner := *s
	inner.input = ""
	w.shell(text, args, false, &inner, "")
}

func (w *walker) isInput(a word, s *state) bool {
	return a.known() && slices.ContainsFunc(w.fromDirs(a.text, s), func(path string) bool {
		return proc.Of(path) == proc.Input || strings.HasPrefix(path, proc.Dir+"/self/fd/")
	})
}

// feed records the known text of a descriptor. first means standard input.
func (w *walker) feed(text string, first bool, s *state) {
	if first {
		s.input = text
	} else if len(w.otherInput) <= texts.MaxScript {
		w.otherInput += text
	}
}

// outputOf returns the known output of what follow follows.
func (w *walker) outputOf(follow func()) (output string) {
	outer := w.output
	w.output = ""
	follow()
	output, w.output = w.output, outer
	return output
}

// addOutput records the known output of echo and the like, or of a program that may pass on its input. If saves is
// set, it may write its input to any file.
func (w *walker) addOutput(args []word, saves bool, s *state) {
	name, _ := programs.System(args[0].text)
	unknown := slices.ContainsFunc(args, func(a word) bool { return !a.known() })
	text := s.input
	if printed, ok := w.printedBy(name, args, text); ok && (!unknown || listed("echo printf", name)) {
		text = printed
	} else if decoded := programs.Decoded(text); decoded != "" {
		text += "\n" + decoded
	}
	if w.output += text; len(w.output) > texts.MaxScript {
		w.output = ""
	}
	written := !s.shown || w.saves || args[0].is("tee")
	if saves && text != "" && !listed("git gh glab", args[0].text) {
		s.disk.code = true
	}
	if written {
		w.keep(text)
	}
	if written || saves {
		w.saved += text[:max(0, min(len(text), texts.MaxScript-len(w.saved)))]
	}
}

func (w *walker) printedBy(name string, args []word, input string) (output string, ok bool) {
	changes := listed("rev tac tr paste sed", name)
	if changes && input != "" {
		w.steps -= 8
	} else if !listed("echo printf", name) {
		return "", false
	}
	return texts.Printed(name, textsOf(args[1:]), input)
}

// detours follows devices, and paths from the root, that rules name in another way: /proc/self/fd/0, //dev/sda. Rules
// meet the command with their names.
func (w *walker) detours(args []word, c *programs.Command, s *state, source string) {
	var argv []policy.Word
	input := false
	for i, a := range args[1:] {
		if !a.known() || !detour().MatchString(a.text) {
			continue
		}
		for _, text := range programs.MayBePaths(a.text) {
			name, opened := w.plainName(text, s)
			if name == "" {
				continue
			}
			if input = input || opened; argv == nil {
				argv = policyWords(args)
			}
			argv[i+1] = policy.Word{Text: strings.TrimSuffix(a.text, text) + name}
		}
	}
	switch {
	case argv == nil:
	case !input:
		w.add(policy.Effect{Kind: policy.Exec, Argv: argv, Dirs: s.dirs, Possible: true, Source: source})
	case programs.Parse(argv).Code && !c.Code:
		w.opaque("a program may run what it reads from an open file", source)
	}
}

// plainName returns the name of a device or of a path from the root, or "" if it is text. opened means an open file.
func (w *walker) plainName(text string, s *state) (name string, opened bool) {
	for _, name := range w.fromDirs(text, s) {
		opened = proc.Holds(name) && len(name) < len(proc.Dir+"/thread-self/task/self/fd/")+20
		if opened {
			name = "/dev/stdin"
		} else if !strings.HasPrefix(name, "/dev/") {
			name = filepath.Clean(text)
		}
		absolute := name[0] == '/' && text != ""
		if absolute && name != text {
			return name, opened
		}
	}
	return "", false
}

var detour = lazyregexp.New(`stdin|fd/|\bdev/|(?:^|[^:])//|/\.\.?(?:/|$)`)

// scan applies deny rules to commands that may be in a text that is not followed.
func (w *walker) scan(text string) {
	parts := func(r rune) bool { return strings.ContainsRune(";\n|&()`{}", r) }
	for segment := range strings.FieldsFuncSeq(text, parts) {
		w.scanSegment(strings.TrimSpace(segment))
		_, value, _ := strings.Cut(segment, "=")
		w.scanSegment(strings.TrimSpace(value))
	}
}

func (w *walker) scanSegment(segment string) {
	if _, known := w.scanned[segment]; known || segment == "" {
		return
	}
	w.scanned[segment] = struct{}{}
	w.suspected("?", withoutQuotes.Replace(segment), false, segment)
}

var withoutQuotes = strings.NewReplacer(`'`, "", `"`, "", `\`, "")

// spend charges a command to the limits. Beyond them, only deny rules see it.
func (w *walker) spend(args []word, source string, wrapped int) bool {
	if w.steps -= 1 + len(args)/4; w.steps > 0 && wrapped < maxInner {
		return true
	}
	w.opaque(tooMuch, "")
	w.add(policy.Effect{Kind: policy.Exec, Argv: appendWords([]policy.Word{{Text: "?"}}, args), Possible: true, Source: source})
	return false
}
