package texts

import (
	"regexp"
	"slices"
	"strings"

	"github.com/toold/toold/internal/lazyregexp"
)

// Printed returns what a program prints for an input if it is echo or printf, as far as that is simple, or one that only
// changes a text: rev, tac, tr, paste -s, or sed with s/// alone. ok is false for others.
func Printed(name string, args []string, input string) (output string, ok bool) {
	lines := strings.Split(strings.TrimSuffix(input, "\n"), "\n")
	switch {
	case name == "echo" || name == "printf":
		return written(name, args), true
	case name == "rev" && len(args) == 0:
		for i, line := range lines {
			letters := []rune(line)
			slices.Reverse(letters)
			lines[i] = string(letters)
		}
	case name == "tac" && len(args) == 0:
		slices.Reverse(lines)
	case name == "paste" && slices.Contains([]string{"-s -d  ", "-sd  "}, strings.Join(append(args, ""), " ")):
		return strings.Join(lines, " ") + "\n", true
	case name == "tr":
		return translated(args, input)
	case name == "sed":
		return edited(args, lines)
	default:
		return "", false
	}
	return strings.Join(lines, "\n") + "\n", true
}

// translated is what tr prints.
func translated(args []string, input string) (output string, ok bool) {
	flags := ""
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		flags, args = flags+args[0][1:], args[1:]
	}
	if len(args) == 0 || len(args) > 2 || strings.Trim(flags, "d") != "" {
		return "", false
	}
	from, ok := members(args[0])
	removes := strings.Contains(flags, "d")
	to := ""
	if len(args) == 2 {
		var known bool
		to, known = members(args[1])
		ok = ok && known && to != ""
	}
	if removes == (len(args) == 2) || !ok {
		return "", false
	}
	changed := strings.Map(func(r rune) rune {
		at := strings.LastIndexByte(from, byte(r))
		switch {
		case r >= 0x80 || at < 0:
			return r
		case removes:
			return -1
		}
		return rune(to[min(at, len(to)-1)])
	}, input)
	return changed, true
}

// members returns the characters of a set of tr in order.
func members(set string) (all string, ok bool) {
	set = strings.NewReplacer("[:upper:]", "A-Z", "[:lower:]", "a-z", "[:digit:]", "0-9", "[:space:]", " \t\n", "[:blank:]", " \t").Replace(set)
	set, ok = ANSIC(set)
	for i := 0; i < len(set); i++ {
		last := set[i]
		if i+2 < len(set) && set[i+1] == '-' {
			last = set[i+2]
		}
		for c := int(set[i]); c <= int(last); c++ {
			all += string(rune(c))
		}
		if last != set[i] {
			i += 2
		}
	}
	return all, ok && isPlain(set)
}

// edited is what sed prints for commands that are s/// alone.
func edited(args, lines []string) (output string, ok bool) {
	var scripts []string
	extended := false
	for i := 0; i < len(args); i++ {
		switch next := i+1 < len(args); {
		case slices.Contains([]string{"-E", "-r"}, args[i]):
			extended = true
		case args[i] == "-e" && next:
			i++
			scripts = append(scripts, args[i])
		case strings.HasPrefix(args[i], "-") || len(scripts) > 0:
			return "", false
		default:
			scripts = append(scripts, args[i])
		}
	}
	text := strings.Join(lines, "\n")
	for script := strings.Join(scripts, ";"); script != ""; script = strings.TrimLeft(script, "; \n") {
		if len(text)*len(script) > maxEdited {
			return "", false
		}
		if text, script, ok = substituted(script, text, extended); !ok {
			return "", false
		}
	}
	return text + "\n", ok
}

// maxEdited limits the work of one script, in bytes of it times bytes of the text.
const maxEdited = 1 << 15

// substituted follows one s/// of sed, and returns the rest of the script.
func substituted(script, text string, extended bool) (changed, rest string, ok bool) {
	if !substitution().MatchString(script) {
		return "", "", false
	}
	pattern, rest, begins := delimited(script[2:], script[1])
	by, rest, ends := delimited(rest, script[1])
	flags := rest[:len(rest)-len(strings.TrimLeft(rest, "gIi"))]
	rest = strings.TrimLeft(rest[len(flags):], " ")
	expr, err := regexp.Compile(strings.Repeat("(?i)", min(1, strings.Count(strings.ToLower(flags), "i"))) + expression(pattern, extended))
	by, plain := template(by)
	whole := begins && ends && strings.Trim(rest[:min(1, len(rest))], ";\n") == ""
	if err != nil || !plain || !whole {
		return "", "", false
	}
	expr.Longest()
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		first := expr.FindStringSubmatchIndex(line)
		switch {
		case strings.Contains(flags, "g"):
			lines[i] = expr.ReplaceAllString(line, by)
		case first != nil:
			lines[i] = line[:first[0]] + string(expr.ExpandString(nil, by, line, first)) + line[first[1]:]
		}
	}
	return strings.Join(lines, "\n"), rest, true
}

var substitution = lazyregexp.New(`^s[^\\\n]`)

// delimited cuts a text at the next delimiter without a backslash.
func delimited(text string, delimiter byte) (before, after string, ok bool) {
	var out strings.Builder
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == delimiter:
			return out.String(), text[i+1:], true
		case text[i] == '\\' && i+1 < len(text):
			if i++; text[i] != delimiter {
				out.WriteByte('\\')
			}
		}
		out.WriteByte(text[i])
	}
	return "", "", false
}

// expression returns a regular expression of sed in the syntax of package regexp.
func expression(text string, extended bool) string {
	var out strings.Builder
	for i := 0; i < len(text); i++ {
		c := text[i]
		end := c == '$' && (i+1 == len(text) || text[i+1] == '\\')
		switch special := strings.IndexByte("(){}+?|$", c) >= 0 && !end; {
		case c == '[':
			end := min(len(text), i+2+max(1, strings.IndexByte(text[min(len(text), i+2):], ']')+1))
			out.WriteString(strings.ReplaceAll(text[i:end], `\`, `\\`))
			i = end - 1
		case c == '\\' && i+1 < len(text):
			if i++; strings.IndexByte("(){}+?|", text[i]) < 0 || extended {
				out.WriteByte('\\')
			}
			out.WriteByte(text[i])
		case special && !extended:
			out.WriteString(`\` + string(c))
		default:
			out.WriteByte(c)
		}
	}
	return out.String()
}

// template returns what sed replaces by in the syntax of package regexp. ok is false for changes of case.
func template(by string) (out string, ok bool) {
	by = strings.ReplaceAll(by, "$", "$$")
	ok = true
	return escapedOrWhole().ReplaceAllStringFunc(by, func(part string) string {
		switch c := part[len(part)-1]; {
		case part == "&":
			return "${0}"
		case c >= '0' && c <= '9':
			return "${" + string(c) + "}"
		case c == 'n':
			return "\n"
		default:
			ok = ok && strings.IndexByte("ULElu", c) < 0
			return string(c)
		}
	}), ok
}

var escapedOrWhole = lazyregexp.New(`&|\\(?s:.)`)
