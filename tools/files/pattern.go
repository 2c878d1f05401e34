package files

import (
	"fmt"
	"regexp"
	"strings"
)

// pathPattern is a compiled glob for paths below a directory: * and ? match within a name, ** any number
// of directories.
type pathPattern struct {
	whole *regexp.Regexp
	fixed []string // leading directories of every match
	depth int      // names in every match; 0: any
}

const longestPattern = 1000 // bytes; bounds the cost of compiling

// newPathPattern compiles a pattern. With anywhere, one without a slash matches in any directory.
func newPathPattern(field, text string, anywhere bool) (pathPattern, error) {
	text = strings.TrimPrefix(text, "./")
	switch {
	case text == "":
		return pathPattern{}, problem(field, "empty; expected a pattern such as **/*.go")
	case len(text) > longestPattern:
		return pathPattern{}, problem(field, "it has %d bytes; a pattern has at most %d", len(text), longestPattern)
	case strings.HasPrefix(text, "/") || strings.HasPrefix(text, "~") || strings.HasPrefix(text, "../"):
		return pathPattern{}, problem(field, "%q does not begin below the directory that is searched; name the directory in path, and the rest here", text)
	}
	if anywhere && !strings.Contains(text, "/") {
		text = "**/" + text
	}
	whole, err := regexp.Compile(`(?s)\A` + translate(strings.TrimSuffix(text, "/")) + `\z`)
	if err != nil {
		return pathPattern{}, problem(field, "%q is no pattern: expected names with *, ?, [a-z], {a,b} and **", text)
	}
	p := pathPattern{whole: whole}
	if !strings.Contains(text, "{") {
		p.measure(text)
	}
	return p, nil
}

func (p *pathPattern) measure(text string) {
	names := strings.Split(strings.TrimSuffix(text, "/"), "/")
	for _, name := range names[:len(names)-1] {
		if strings.ContainsAny(name, `*?[\`) {
			break
		}
		p.fixed = append(p.fixed, name)
	}
	if !strings.Contains(text, "**") && !strings.Contains(text, "[") {
		p.depth = len(names)
	}
}

func (p pathPattern) matches(path string) bool { return p.whole.MatchString(path) }

// mayHold reports whether a path below dir may match.
func (p pathPattern) mayHold(dir string) bool {
	names := strings.Split(dir, "/")
	if p.depth > 0 && len(names) >= p.depth {
		return false
	}
	for i, name := range p.fixed[:min(len(p.fixed), len(names))] {
		if name != names[i] {
			return false
		}
	}
	return true
}

func translate(text string) string {
	var b strings.Builder
	braces := 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '*':
			i += stars(&b, text[i:], i == 0 || text[i-1] == '/') - 1
		case c == '?':
			b.WriteString(`[^/]`)
		case c == '[':
			i += class(&b, text[i:]) - 1
		case c == '{':
			braces++
			b.WriteString(`(?:`)
		case c == '}' && braces > 0:
			braces--
			b.WriteString(`)`)
		case c == ',' && braces > 0:
			b.WriteString(`|`)
		case c == '\\' && i+1 < len(text):
			i++
			b.WriteString(regexp.QuoteMeta(text[i : i+1]))
		default:
			b.WriteString(regexp.QuoteMeta(text[i : i+1]))
		}
	}
	return b.String()
}

// stars writes leading asterisks, at the start of a name or within, and returns their length.
func stars(b *strings.Builder, text string, starts bool) int {
	switch {
	case starts && strings.HasPrefix(text, "**/"):
		b.WriteString(`(?:[^/]+/)*`)
		return len("**/")
	case strings.HasPrefix(text, "**"):
		b.WriteString(`.*`)
		return len("**")
	}
	b.WriteString(`[^/]*`)
	return len("*")
}

// class writes a leading character class and returns its length. An unclosed bracket is literal.
func class(b *strings.Builder, text string) int {
	end := strings.IndexByte(text[min(2, len(text)):], ']') // the first may be a member
	if end < 0 {
		b.WriteString(`\[`)
		return 1
	}
	members := text[1 : end+2]
	not := ""
	if members[0] == '!' || members[0] == '^' {
		not, members = "^/", members[1:]
	}
	members = strings.NewReplacer(`\`, `\\`, `[`, `\[`, `]`, `\]`, `^`, `\^`, `&`, `\&`).Replace(members)
	fmt.Fprintf(b, "[%s%s]", not, members)
	return end + 3
}
