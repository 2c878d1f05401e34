package policy

import "strings"

// The two small languages that everyday commands carry: sed's and awk's. What is
// not plainly harmless is not safe; these readers need not understand it.

// safeSedScript reports whether a sed script only selects, prints and edits
// lines: no command that runs a program or names a file.
func safeSedScript(w Word) bool {
	if w.Dynamic {
		return false
	}
	s := w.Text
	for {
		s = strings.TrimLeft(s, " \t\n;{}")
		if s == "" {
			return true
		}
		var ok bool
		if s, ok = sedAddress(s); !ok || s == "" {
			return false
		}
		if s, ok = sedCommand(s); !ok {
			return false
		}
	}
}

// sedAddress skips an address: numbers, $, /re/, with commas, ~, + and !.
func sedAddress(s string) (rest string, ok bool) {
	for s != "" {
		switch c := s[0]; {
		case c >= '0' && c <= '9' || strings.IndexByte("$,~+! \t", c) >= 0:
			s = s[1:]
		case c == '/':
			_, rest, ok := sedDelimited(s[1:], '/')
			if !ok {
				return "", false
			}
			s = strings.TrimLeft(rest, "IM")
		default:
			return s, true
		}
	}
	return "", true
}

// sedDelimited returns the text up to an unescaped delimiter and what follows.
// A line break inside is refused: sed's and our idea of it might differ.
func sedDelimited(s string, delimiter byte) (text, rest string, ok bool) {
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '\n', '[':
			// A delimiter inside brackets ends the text or not, by version and
			// context; a bracket that closes before any delimiter is plain.
			if s[i] == '\n' {
				return "", "", false
			}
			end := sedBracket(s[i+1:])
			if end < 0 || strings.IndexByte(s[i+1:i+1+end], delimiter) >= 0 {
				return "", "", false
			}
		case delimiter:
			return s[:i], s[i+1:], true
		}
	}
	return "", "", false
}

// sedBracket returns where the brackets that begin before s end, -1 if they do not.
// In []x] and [^]x] the first ] is one of the characters; [:alpha:], [=x=] and [.x.]
// end with their own mark.
func sedBracket(s string) int {
	i := 0
	if strings.HasPrefix(s, "^") {
		i++
	}
	if strings.HasPrefix(s[i:], "]") {
		i++
	}
	for ; i < len(s); i++ {
		switch {
		case s[i] == ']':
			return i
		case s[i] == '[' && i+1 < len(s) && strings.IndexByte(":=.", s[i+1]) >= 0:
			end := strings.Index(s[i+2:], s[i+1:i+2]+"]")
			if end < 0 {
				return -1
			}
			i += end + 3
		}
	}
	return -1
}

// sedCommand skips one command.
func sedCommand(s string) (rest string, ok bool) {
	c := s[0]
	switch {
	case strings.IndexByte("pdDPqQlnNgGhHx=}", c) >= 0:
		return sedEnd(strings.TrimLeft(s[1:], "0123456789"))
	case c == '{':
		return s[1:], true
	case c == 's' || c == 'y':
		return sedSubstitute(s[1:], c == 's')
	}
	return "", false
}

// sedSubstitute skips the two texts and the flags of s and y.
func sedSubstitute(s string, flags bool) (rest string, ok bool) {
	if s == "" || s[0] == '\\' || s[0] == '\n' || s[0] >= 0x80 || s[0] == '[' {
		return "", false
	}
	delimiter := s[0]
	if _, s, ok = sedDelimited(s[1:], delimiter); !ok {
		return "", false
	}
	if _, s, ok = sedDelimited(s, delimiter); !ok {
		return "", false
	}
	if flags {
		s = strings.TrimLeft(s, "gpIi0123456789") // not e, not w
	}
	return sedEnd(s)
}

// sedEnd checks that a command ends here.
func sedEnd(s string) (rest string, ok bool) {
	s = strings.TrimLeft(s, " \t")
	if s == "" || strings.IndexByte(";\n}", s[0]) >= 0 {
		return s, true
	}
	return "", false
}

// awkUsage reads awk's flags, program and files.
func awkUsage(words []Word) (u Usage, safe bool) {
	u, safe = Usage{Known: true}, true
	program := false
	for i := 0; i < len(words); i++ {
		w := words[i]
		switch {
		case w.Dynamic && (w.Text == "" || w.Text[0] == '-'):
			safe = false
			u.Operands = append(u.Operands, Operand{Word: w, Kind: Read})
		case !program && (w.Text == "-F" || w.Text == "-v"):
			i++
			safe = safe && i < len(words) && !words[i].Dynamic
		case !program && strings.HasPrefix(w.Text, "-F"):
		case !program && strings.HasPrefix(w.Text, "-"):
			safe = false
		case !program:
			program = true
			safe = safe && safeAwkProgram(w)
		default:
			// name=value between files is an assignment; as a path it is judged too.
			u.Operands = append(u.Operands, Operand{Word: w, Kind: Read})
		}
	}
	return u, safe && program
}

// safeAwkProgram reports whether an awk program neither runs commands nor names
// files. Text inside quotes counts like code: a false alarm costs a question.
func safeAwkProgram(w Word) bool {
	if w.Dynamic {
		return false
	}
	for _, bad := range []string{"system", "getline", "ENVIRON", "PROCINFO", "ARGV", "FILENAME=", "@", "`"} {
		if strings.Contains(w.Text, bad) {
			return false
		}
	}
	code := strings.NewReplacer("||", "", ">=", "").Replace(w.Text)
	if strings.Contains(code, "|") {
		return false
	}
	// After print, > writes a file; before any print it can only compare.
	printed := strings.Index(code, "print")
	return printed < 0 || !strings.Contains(code[printed:], ">")
}
