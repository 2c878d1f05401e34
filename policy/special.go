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
	case "mktemp":
		u, _ := mktempUsage(argv[1:])
		return u, true
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
	case "mktemp":
		_, known := mktempUsage(argv[1:])
		return known && workspace, true
	}
	return false, false
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
