package shell

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/toold/toold/internal/lazyregexp"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/shell/programs"
	"github.com/toold/toold/shell/texts"
)

func (w *walker) program(args []word, s *state, source string) {
	name, system := programs.System(args[0].text)
	git := system && name == "git"
	if git {
		args, s = w.gitDirectory(args, s)
		w.repository(s, source)
		w.namedRepository(args[1:], s, source)
	}
	if strings.Contains(args[0].text, "/") && !system {
		w.written(args[0].text, false, args[1:], s, source)
	}
	argv, c := parsed(args)
	if git || c.Covers != programs.CoversRead {
		s.disk.runs()
	}
	w.unnamedFiles(&c, s, source)
	if c.Name != "" && w.followStarted(args, &c, s, source) {
		w.runsSaved(&programs.Command{Covers: programs.CoversRead}, s, source)
		// A rule may still match the program itself.
		w.add(policy.Effect{Kind: policy.Exec, Argv: argv, Dirs: s.dirs, Possible: true, Follow: true, Source: source})
		if len(c.Sub) == 0 && !slices.ContainsFunc(c.Runs, func(r programs.Run) bool { return r.Language != "" }) {
			w.operands(&c, args, s, source)
		}
		return
	}
	if git {
		w.configured(&c, s, source)
		w.aliased(args, &c, s, source)
	}
	follow := c.Name != "" && c.Opaque == "" && c.Followed()
	w.add(policy.Effect{Kind: policy.Exec, Argv: argv, Dirs: s.dirs, Follow: follow, Source: source})
	w.fed(&c, argv, s, source)
	w.unmatched(&c, args, source)
	w.runsSaved(&c, s, source)
	if !follow {
		w.startShells(args, c.Runs, s, source)
	}
	w.addOutput(args, c.Covers != programs.CoversRead, s)
	w.detours(args, &c, s, source)
	w.files(&c, args, s, source)
}

// fed applies ask and deny rules to code on standard input. The input of an unknown program may be code, and so may that
// of one that starts a shell.
func (w *walker) fed(c *programs.Command, argv []policy.Word, s *state, source string) {
	text := s.input + w.otherInput
	if text == "" || !c.Feeds && !c.StartsShell(argv) {
		return
	}
	w.suspected(map[bool]string{true: "?", false: "<"}[c.Code], text, false, source)
	lines := strings.SplitN(text, "\n", maxTaken+1)
	for i := 0; c.Carries && len(argv) > 1 && i < min(len(lines), maxTaken); i++ { // each may be arguments, as of parallel
		if words := strings.Fields(lines[i]); len(words) > 0 && len(words) < maxTaken {
			command := slices.DeleteFunc(slices.Clone(argv), func(a policy.Word) bool { return placeholder().MatchString(a.Text) })
			w.add(policy.Effect{Kind: policy.Exec, Argv: append(command, programs.Words(words)...), Possible: true, Code: true, Source: source})
		}
	}
}

const maxTaken = 8 // lines of input, and words of each, that a program may take for arguments

// placeholder matches a word that a program replaces by its input, such as {}.
var placeholder = lazyregexp.New(`^\{\d*\}$`)

// unmatched applies deny rules to patterns that match no file, which bash leaves as they are.
func (w *walker) unmatched(c *programs.Command, args []word, source string) {
	if !c.Code && !c.Carries || !slices.ContainsFunc(args, hasGlob) {
		return
	}
	args = slices.Clone(args)
	for i, a := range args {
		if a.glob {
			args[i] = plainWord(texts.Unescape(a.text, false))
		}
	}
	w.add(policy.Effect{Kind: policy.Exec, Argv: policyWords(args), Possible: true, Code: true, Source: source})
}

// runsSaved applies ask and deny rules to what the script wrote to files or variables: a program that no preset covers may
// run them.
func (w *walker) runsSaved(c *programs.Command, s *state, source string) {
	if c.Covers != programs.CoversNone || c.Name == "git" && !c.Code {
		if !w.loads {
			return
		}
	}
	for _, text := range []*string{&w.passed, &w.saved} {
		if *text != "" && (s.disk.code || text == &w.passed) {
			w.suspected("<", *text, true, source)
			*text = "" // once is enough
		}
	}
}

func (w *walker) startShells(args []word, runs []programs.Run, s *state, source string) {
	for _, run := range runs {
		if run.Language == "" && !run.Elsewhere && programs.Parse(run.Argv).Through {
			w.start(args, run, s, source) // what a shell runs is known
		}
	}
}

func parsed(args []word) (argv []policy.Word, c programs.Command) {
	argv = policyWords(args)
	c = programs.Parse(argv)
	if !c.Through || !slices.ContainsFunc(args, hasGlob) {
		return argv, c
	}
	for i, a := range args {
		argv[i].Many = argv[i].Many || a.glob // a matching name may be the program
	}
	return argv, programs.Parse(argv)
}

func hasGlob(a word) bool { return a.glob }

// unnamedFiles adds the files that a program uses without an argument naming them.
func (w *walker) unnamedFiles(c *programs.Command, s *state, source string) {
	if c.Name == "nohup" && s.shown {
		w.operandPath(programs.Operand{Word: policy.Word{Text: "nohup.out"}, Kind: programs.Write}, s, source)
	}
	if toolchain := listed("cargo rustc rustfmt rustup", c.Name); toolchain && c.Covers != programs.CoversNone {
		w.toolchain(c.Name, s, source)
	}
}

// files adds the effects of a program on the files and hosts among its arguments.
func (w *walker) files(c *programs.Command, args []word, s *state, source string) {
	c.AddStarted()
	suspects := c.Suspects
	if slices.ContainsFunc(args, hasGlob) {
		expanded := programs.Parse(w.expanded(args, s))
		c = &expanded
		c.AddStarted()
	}
	w.operands(c, args, s, source)
	w.links(c, s)
	if len(w.printed) < maxNames {
		w.printed = append(w.printed, c.Prints...)
	}
	w.suspect(suspects, s, source)
}

func (w *walker) operands(c *programs.Command, args []word, s *state, source string) {
	all := c.Files()
	trees := slices.ContainsFunc(all, func(o programs.Operand) bool { return o.Tree })
	for i, o := range all {
		all[i].Part = w.brought(c, o, s, source)
	}
	for _, o := range all {
		if o.Word.Text == "-" && o.Kind == programs.Write && listed("mkdir rmdir touch tee mkfifo rm", c.Name) {
			o.Word.Text = "./-"
		}
		if o.Kind == programs.Net {
			e := policy.Effect{Kind: policy.Net, Source: source}
			if e.Scheme, e.Host, e.Port = programs.Contact(o.Word, args[0].text); c.Fetches {
				e.Method = "GET"
			}
			w.add(e)
			continue
		}
		s.disk.reads(o)
		w.linked.Begin(o, c.Name == "ln")
		w.operandPath(o, s, source)
		w.linked.Begin(programs.Operand{}, false)
		if trees && o.Kind == programs.Write && !o.Word.Dynamic { // of cp -r a b, all below b
			for _, file := range w.fromDirs(o.Word.Text, s) {
				s.disk.write(file, true)
			}
		}
		if o.Word.Dynamic && o.Kind == programs.Read && w.xargs > 0 {
			w.fromPipe(s, source)
		}
	}
}

// brought returns the Part of an operand: for the workspace, the files that a command brings, maybe into .git.
func (w *walker) brought(c *programs.Command, o programs.Operand, s *state, source string) string {
	if !c.BringsTo(o) || !slices.Contains(w.fromDirs(o.Word.Text, s), w.workspace) {
		return o.Part
	}
	trees, all := c.Brings()
	for _, tree := range trees {
		all = all || strings.Contains("/"+tree.Text+"/", "/.git/")
		for _, dir := range w.fromDirs(tree.Text, s) {
			holds := w.exists(dir+"/.git") || s.disk.mayBeRepository(dir)
			all = all || holds && dir != w.workspace
		}
	}
	if all {
		w.possible(policy.Write, w.workspace+"/.git/HEAD", s, source)
	}
	return programs.PartBrought
}

// fromPipe adds possible effects on the names piped to xargs.
func (w *walker) fromPipe(s *state, source string) {
	for i, name := range strings.Fields(s.input) {
		if i < maxNames {
			w.mayRead(name, s, source)
		}
	}
	for _, o := range s.pipedNames[:min(len(s.pipedNames), maxNames)] {
		if o.Word.Dynamic {
			continue
		}
		for e := range w.pathEffects(policy.Read, o.Word.Text, s) {
			e.Tree, e.Part, e.Possible, e.Source = true, o.Part, true, source
			w.add(e)
		}
	}
}

func (w *walker) mayRead(name string, s *state, source string) {
	if w.steps -= 4; name[0] == '-' || len(name) > maxPath || w.steps <= 0 {
		return
	}
	w.possible(policy.Read, name, s, source)
}

// possible adds an effect that only ask and deny rules see.
func (w *walker) possible(kind policy.Kind, name string, s *state, source string) {
	for e := range w.pathEffects(kind, name, s) {
		e.Possible, e.Source = true, source
		w.add(e)
	}
}

func (w *walker) expanded(args []word, s *state) []policy.Word {
	out := make([]policy.Word, 0, len(args))
	for i, a := range args {
		if len(out) > maxWords {
			return append(out, policy.Word{Dynamic: true})
		}
		if !a.glob {
			out = appendWords(out, args[i:i+1])
			continue
		}
		if w.globInProc(a.text, s) {
			w.opaque("a pattern may match any file below /proc", a.text)
		}
		out = append(out, policy.Word{Text: operandText(texts.Unescape(a.text, false))})
		out = w.matches(out, a.text, s)
	}
	return out
}

func (w *walker) matches(out []policy.Word, pattern string, s *state) []policy.Word {
	dirs := s.dirs
	if strings.HasPrefix(pattern, "/") {
		dirs = []string{""}
	} else if dirs == nil {
		return append(out, policy.Word{Dynamic: true})
	}
	for _, dir := range dirs {
		if dir != "" {
			dir += "/"
		}
		names, complete := w.glob(dir + pattern)
		if !complete || w.posix && parents().MatchString(pattern) {
			out = append(out, policy.Word{Dynamic: true})
		}
		for _, name := range slices.Concat(names, w.made(dir+pattern, s)) {
			out = append(out, policy.Word{Text: operandText(strings.TrimPrefix(name, dir))})
		}
	}
	return out
}

// parents matches patterns that match ".." in dash.
var parents = lazyregexp.New(`(?:^|/)\.[.*?[]`)

func (w *walker) made(pattern string, s *state) (names []string) {
	w.steps -= len(s.disk.marks) / 8
	pattern = texts.Widened(filepath.Clean(pattern))
	for name, m := range s.disk.marks {
		if ok, err := filepath.Match(pattern, name); m != repository && (ok || err != nil) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func (w *walker) glob(pattern string) ([]string, bool) {
	g, ok := w.globs[pattern]
	if !ok {
		if w.steps -= globSteps; w.steps <= 0 {
			return nil, false
		}
		g.names, g.complete = w.resolver.Glob(pattern, maxGlob)
		w.globs[pattern] = g
	}
	return g.names, g.complete
}

func operandText(name string) string {
	if strings.HasPrefix(name, "-") {
		return "./" + name
	}
	return name
}

func (w *walker) suspect(args []policy.Word, s *state, source string) {
	for _, a := range args {
		for _, text := range programs.MayBePaths(a.Text) {
			if a.Dynamic && text != "" {
				w.guardProc(programs.Operand{Word: policy.Word{Text: text, Dynamic: true}}, s, source)
			}
			isPath := text != "" && text[0] != '-' && len(text) <= maxPath
			if isPath && !a.Dynamic {
				w.possible(policy.Read, text, s, source)
				w.possible(policy.Write, text, s, source)
			}
		}
	}
}
