package files

import (
	"fmt"
	"regexp"
	"strings"
)

// pathPattern is a compiled glob for paths below a directory. * and ? match within a name, ** matches any number of
// directories.
type pathPattern struct {
	whole *regexp.Regexp
	fixed []string // leading directories of every match
	depth int      // number of names in every match; 0 = any
}

const longestPattern = 1000 // bytes; limits the cost of compiling

// newPathPattern compiles a pattern for paths below root, with which it may begin. With anywhere, a pattern without a
// slash matches in every directory.
func newPathPattern(field, text, root string, anywhere bool) (pathPattern, error) {
	given := text
	if text = plain(text); root != "" {
		text = strings.TrimPrefix(text, strings.TrimSuffix(root, "/")+"/")
	}
	switch {
	case given == "":
		return pathPattern{}, problem(field, "empty; expected a pattern such as **/*.go")
	case len(given) > longestPattern:
		return pathPattern{}, problem(field, "it has %d bytes; a pattern has at most %d", len(given), longestPattern)
	case text == "":
		text = "**" // the directory itself
	case outside.MatchString(text):
		return pathPattern{}, problem(field, "%q does not begin below the directory that is searched; name the directory in path, and the rest here", given)
	case anywhere && text[0] == '!':
		return pathPattern{}, problem(field, "%q: a pattern cannot leave files out; name those to search", given)
	}
	if anywhere && !strings.Contains(strings.TrimSuffix(text, "/"), "/") {
		text = "**/" + text
	}
	whole, err := regexp.Compile(`(?s)\A(?:` + translate(text) + `)\z`)
	if err != nil {
		return pathPattern{}, problem(field, "%q is no pattern: expected names with *, ?, [a-z], {a,b} and **", given)
	}
	p := pathPattern{whole: whole}
	if !strings.Contains(text, "{") {
		p.measure(text)
	}
	return p, nil
}

// outside matches patterns with an alternative that leads out of the directory.
var outside = regexp.MustCompile(`\A[/~]|\A\{(?:[^{}]*,)?[/~]|(\A|[/{,])\.\.(/|[,}]|\z)`)

// plain removes redundant "./" and "//".
func plain(text string) string {
	for was := ""; was != text; {
		was = text
		text = strings.ReplaceAll(strings.TrimPrefix(text, "./"), "/./", "/")
		for _, before := range []string{"{", ","} {
			text = strings.ReplaceAll(text, before+"./", before)
		}
		text = strings.ReplaceAll(text, "//", "/")
	}
	return text
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

// matches reports whether a path matches. A pattern that ends in a slash only matches directories.
func (p pathPattern) matches(path string, dir bool) bool {
	// lib/* and lib/** match lib/ as well, but mean its contents.
	named := dir && p.whole.MatchString(path+"/") && !p.whole.MatchString(path+"/\x00")
	return named || p.whole.MatchString(path)
}

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

// group is an unclosed brace.
type group struct {
	starts bool // it is at the start of a name
	slash  bool // an alternative ends in a slash
}

func translate(text string) string {
	var b strings.Builder
	var open []group
	starts := true // the next character is the first of a name
	for i := 0; i < len(text); i++ {
		began := starts
		starts = text[i] == '/'
		last := len(open) - 1
		switch c := text[i]; {
		case c == '*':
			n := stars(&b, text[i:], began)
			i += n - 1
			starts = text[i] == '/'
		case c == '?':
			b.WriteString(`[^/]`)
		case c == '[':
			i += class(&b, text[i:]) - 1
		case c == '{' && closes(text[i:]):
			open = append(open, group{starts: began})
			starts = began
			b.WriteString(`(?:`)
		case c == '}' && last >= 0:
			starts = open[last].slash || began
			open = open[:last]
			b.WriteString(`)`)
		case c == ',' && last >= 0:
			open[last].slash = open[last].slash || began
			starts = open[last].starts
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

// closes reports whether a leading brace is closed. An unclosed brace is literal.
func closes(text string) bool {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '[':
			i += class(new(strings.Builder), text[i:]) - 1
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return true
			}
		}
	}
	return false
}

// stars translates leading asterisks, depending on whether a name starts there, and returns their length.
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

// class translates a leading character class and returns its length. An unclosed bracket is literal.
func class(b *strings.Builder, text string) int {
	not, first := "", 1
	if len(text) > 1 && (text[1] == '!' || text[1] == '^') {
		not, first = "^/", 2
	}
	end := strings.IndexByte(text[min(first+1, len(text)):], ']') // the first may be a member
	if end < 0 {
		b.WriteString(`\[`)
		return 1
	}
	members := text[first : first+1+end]
	members = strings.NewReplacer(`\`, `\\`, `[`, `\[`, `]`, `\]`, `^`, `\^`, `&`, `\&`).Replace(members)
	fmt.Fprintf(b, "[%s%s]", not, members)
	return first + end + 2
}
