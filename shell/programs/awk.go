package programs

import "strings"

func (c *Command) awk(words []Word) {
	c.Known = true
	safe, program := true, false
	for i := 0; i < len(words); i++ {
		w := words[i]
		switch {
		case w.Many || w.Dynamic && (w.Text == "" || w.Text[0] == '-'):
			safe = false
			c.Operands = append(c.Operands, Operand{Word: w, Kind: Read})
		case !program && (w.Text == "-F" || w.Text == "-v"):
			i++
			if safe = safe && i < len(words) && !words[i].Dynamic; i < len(words) && words[i].Many {
				c.Operands = append(c.Operands, Operand{Word: Word{Dynamic: true}, Kind: Read})
			}
		case !program && strings.HasPrefix(w.Text, "-F"):
		case !program && strings.HasPrefix(w.Text, "-"):
			safe = false
		case !program:
			program = true
			safe = safe && safeAwkProgram(w)
		default:
			// name=value between files is an assignment; it is judged as a path, too.
			c.Operands = append(c.Operands, Operand{Word: w, Kind: Read})
		}
	}
	if safe && program {
		c.Covers = CoversRead
	}
}

// safeAwkProgram reports whether an awk program neither runs commands nor names files. Text inside
// quotes counts like code: a false alarm costs a question.
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
