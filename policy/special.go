package policy

import "strings"

// Commands whose arguments are a language of their own.

// specialUsage describes the commands that a table of flags cannot.
func specialUsage(argv []Word) (Usage, bool) {
	switch name := trustedName(argv[0].Text); name {
	case "find":
		u, _ := findUsage(argv[1:])
		return u, true
	case "sed":
		u, _, _ := sedUsage(argv[1:])
		return u, true
	case "awk", "gawk", "mawk", "nawk":
		u, _ := awkUsage(argv[1:])
		return u, true
	case "tar":
		return tarUsage(argv[1:]), true
	case "ln":
		return linkUsage(argv)
	case "curl", "wget", "git", "ssh", "nc", "ncat", "netcat", "telnet", "scp", "rsync":
		return netUsage(name, argv)
	}
	return Usage{}, false
}

// specialCovered reports whether a preset covers such a command. ok is false for
// commands that the table describes.
func specialCovered(argv []Word, workspace bool) (covered, ok bool) {
	switch trustedName(argv[0].Text) {
	case "find":
		_, safe := findUsage(argv[1:])
		return safe, true
	case "sed":
		_, safe, inPlace := sedUsage(argv[1:])
		return safe && (workspace || !inPlace), true
	case "awk", "gawk", "mawk", "nawk":
		_, safe := awkUsage(argv[1:])
		return safe, true
	case "tar":
		return listsArchive(argv[1:]), true
	}
	return false, false
}

// findTests are find's tests and actions that run and change nothing, with the
// number of words that follow them.
var findTests = map[string]int{
	"-name": 1, "-iname": 1, "-path": 1, "-ipath": 1, "-wholename": 1, "-regex": 1, "-iregex": 1, "-regextype": 1,
	"-type": 1, "-xtype": 1, "-size": 1, "-mtime": 1, "-mmin": 1, "-atime": 1, "-amin": 1, "-ctime": 1, "-cmin": 1,
	"-maxdepth": 1, "-mindepth": 1, "-perm": 1, "-user": 1, "-group": 1, "-uid": 1, "-gid": 1, "-links": 1, "-inum": 1,
	"-lname": 1, "-ilname": 1, "-newermt": 1, "-fstype": 1, "-printf": 1, "-D": 1,
	"-print": 0, "-print0": 0, "-ls": 0, "-empty": 0, "-prune": 0, "-depth": 0, "-d": 0, "-xdev": 0, "-mount": 0,
	"-not": 0, "!": 0, "(": 0, ")": 0, "-o": 0, "-or": 0, "-a": 0, "-and": 0, ",": 0, "-true": 0, "-false": 0, "-quit": 0,
	"-readable": 0, "-writable": 0, "-executable": 0, "-nouser": 0, "-nogroup": 0, "-daystart": 0, "-noleaf": 0,
	"-follow": 0, "-L": 0, "-H": 0, "-P": 0, "-O1": 0, "-O2": 0, "-O3": 0,
}

// findUsage reads find's roots and its expression. The command of -exec is not
// judged here: whoever makes the effects gives it as one of its own.
func findUsage(words []Word) (u Usage, safe bool) {
	f := findReader{safe: true}
	for i := 0; i < len(words); i++ {
		i += f.word(words, i)
	}
	if !f.rooted {
		f.add(Word{Text: "."}, Read)
	}
	if !f.runs {
		for i := range f.operands {
			f.operands[i].Part = PartNames
		}
	}
	if f.deletes {
		f.safe = false
		for _, o := range f.operands {
			f.add(o.Word, Write)
		}
	}
	return Usage{Known: true, Operands: f.operands}, f.safe
}

// findReader reads find's words one by one.
type findReader struct {
	operands     []Operand
	safe         bool
	deletes      bool
	runs         bool // commands that may read what is found
	rooted       bool
	inExpression bool
}

func (f *findReader) add(w Word, kind Kind) {
	f.operands = append(f.operands, Operand{Word: w, Kind: kind, Tree: true})
}

// word reads words[i] and returns how many words after it belong to it.
func (f *findReader) word(words []Word, i int) int {
	w := words[i]
	takes, known := findTests[w.Text]
	flag := known || strings.HasPrefix(w.Text, "-")
	switch {
	case w.Dynamic && (w.Text == "" || flag):
		f.safe = false
		f.add(w, Read)
	case known:
		f.test(w.Text)
		return takes
	case flag || f.inExpression:
		return f.action(words, i)
	default:
		f.rooted = true
		f.add(w, Read)
	}
	return 0
}

// test reads a test that find only evaluates.
func (f *findReader) test(name string) {
	if name != "-L" && name != "-H" && name != "-P" {
		f.inExpression = true
	}
	if name == "-L" || name == "-follow" {
		f.add(Word{Dynamic: true}, Read)
	}
}

// action reads a part of the expression that does something, or is not known.
func (f *findReader) action(words []Word, i int) int {
	f.inExpression = true
	switch name := words[i].Text; {
	case name == "-exec" || name == "-execdir" || name == "-ok" || name == "-okdir":
		f.runs = true
		end := i + 1
		for end < len(words) && words[end].Text != ";" && (words[end].Text != "+" || words[end-1].Text != "{}") {
			end++
		}
		return end - i
	case name == "-delete":
		f.deletes = true
	case strings.HasPrefix(name, "-newer") || name == "-samefile" || name == "-anewer" || name == "-cnewer":
		return 1
	default:
		f.safe = false // -fprint, -fls, -files0-from and whatever comes later
		if strings.HasPrefix(name, "-f") && i+1 < len(words) {
			f.operands = append(f.operands, Operand{Word: words[i+1], Kind: Write})
			return 1
		}
	}
	return 0
}

// sedUsage reads sed's flags, scripts and files.
func sedUsage(words []Word) (u Usage, safe, inPlace bool) {
	s := sedReader{safe: true}
	for i := 0; i < len(words); i++ {
		i += s.word(words, i)
	}
	if !s.script && len(s.files) > 0 {
		s.safe = s.safe && safeSedScript(s.files[0])
		s.files = s.files[1:]
	}
	u.Known = true
	for _, w := range s.files {
		u.Operands = append(u.Operands, Operand{Word: w, Kind: Read})
		if s.inPlace {
			u.Operands = append(u.Operands, Operand{Word: w, Kind: Write}, Operand{Word: Word{w.Text + s.suffix, w.Dynamic}, Kind: Write})
		}
	}
	return u, s.safe, s.inPlace
}

// sedReader reads sed's words one by one.
type sedReader struct {
	files   []Word
	safe    bool
	script  bool // a script was given by a flag
	inPlace bool
	suffix  string // of the copies that -i keeps
}

// word reads words[i] and returns how many words after it belong to it.
func (s *sedReader) word(words []Word, i int) int {
	w := words[i]
	switch {
	case w.Dynamic && (w.Text == "" || w.Text[0] == '-'):
		s.safe = false
		s.files = append(s.files, w)
	case w.Text == "--":
		s.files = append(s.files, words[i+1:]...)
		return len(words)
	case len(w.Text) < 2 || w.Text[0] != '-':
		s.files = append(s.files, w)
	default:
		return s.flag(words, i)
	}
	return 0
}

// flag reads a flag.
func (s *sedReader) flag(words []Word, i int) int {
	text := words[i].Text
	if script, ok := strings.CutPrefix(text, "--expression="); ok {
		s.addScript(Word{Text: script})
		return 0
	}
	if suffix, ok := strings.CutPrefix(text, "--in-place"); ok || strings.HasPrefix(text, "-i") {
		if !ok {
			suffix = text[2:]
		}
		s.inPlace, s.suffix = true, strings.TrimPrefix(suffix, "=")
		s.safe = s.safe && !strings.ContainsAny(suffix, "/*")
		return 0
	}
	short := text[1] != '-'
	if text == "--expression" || short && strings.HasSuffix(text, "e") {
		s.safe = s.safe && (text == "--expression" || isSedFlag(text))
		if i+1 < len(words) {
			s.addScript(words[i+1])
		}
		return 1
	}
	s.safe = s.safe && isSedFlag(text)
	s.inPlace = s.inPlace || short && strings.Contains(text, "i")
	return 0
}

// addScript takes a script given by a flag.
func (s *sedReader) addScript(w Word) {
	s.script = true
	s.safe = s.safe && safeSedScript(w)
}

// isSedFlag reports whether a flag of sed runs and writes nothing by itself.
func isSedFlag(s string) bool {
	switch s {
	case "--quiet", "--silent", "--regexp-extended", "--separate", "--unbuffered", "--null-data", "--posix", "--debug":
		return true
	}
	return s[1] != '-' && strings.Trim(s[1:], "nrEsuz") == "" || s[1] != '-' && strings.Trim(s[1:len(s)-1], "nrEsuz") == "" && s[len(s)-1] == 'e'
}
