package files

import (
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/toold/toold/internal/lazyregexp"
	"github.com/toold/toold/policy"
)

// pathPattern is a glob for paths below a directory: one of its alternatives matches. * and ? match within a name, **
// matches any number of directories.
type pathPattern []alternative

type alternative struct {
	glob  string
	dirs  bool     // it matches directories only
	fixed []string // leading directories of every match
	depth int      // number of names in every match; 0 = any
}

// Both limit the cost of matching, in bytes.
const (
	longestPattern   = 1000
	mostAlternatives = 8000 // all of them together
)

// newPathPattern compiles a pattern for paths below root, with which it may begin. With anywhere, a pattern without a
// slash matches in every directory.
func newPathPattern(field, given, root string, anywhere bool) (p pathPattern, err error) {
	switch {
	case given == "":
		return nil, problem(field, "empty; expected a pattern such as **/*.go")
	case len(given) > longestPattern:
		return nil, problem(field, "it has %d bytes; a pattern has at most %d", len(given), longestPattern)
	case anywhere && given[0] == '!':
		return nil, problem(field, "%q: a pattern cannot leave files out; name those to search", given)
	}
	anywhere = anywhere && !strings.Contains(strings.TrimSuffix(plain(given), "/"), "/")
	texts, err := policy.ExpandBraces(given)
	if err != nil {
		return nil, problem(field, "%q: %v; write \\{ and \\} for those in names", given, err)
	}
	if all := len(strings.Join(texts, "")); all > mostAlternatives {
		return nil, problem(field, "its alternatives have %d bytes together; at most %d are matched: ask for fewer", all, mostAlternatives)
	}
	for _, text := range texts {
		text = plain(text)
		if root != "" {
			text = strings.TrimPrefix(text, strings.TrimSuffix(root, "/")+"/")
		}
		switch {
		case text == "":
			text = "**" // the directory itself
		case outside().MatchString(text):
			return nil, problem(field, "%q does not begin below the directory that is searched; name the directory in path, and the rest here", given)
		case anywhere:
			text = "**/" + text
		}
		a := newAlternative(text)
		if !doublestar.ValidatePattern(a.glob) {
			return nil, problem(field, "%q is no pattern: expected names with *, ?, [a-z], {a,b} and **", given)
		}
		p = append(p, a)
	}
	return p, nil
}

// outside matches patterns that lead out of the directory.
var outside = lazyregexp.New(`\A[/~]|(\A|/)\.\.(/|\z)`)

// plain removes redundant "./" and "//".
func plain(text string) string {
	for was := ""; was != text; {
		was = text
		text = strings.ReplaceAll(strings.TrimPrefix(text, "./"), "/./", "/")
		text = strings.ReplaceAll(text, "//", "/")
	}
	return text
}

func newAlternative(text string) (a alternative) {
	a.glob, a.dirs = strings.CutSuffix(text, "/")
	names := strings.Split(a.glob, "/")
	for _, name := range names[:len(names)-1] {
		if strings.ContainsAny(name, `*?[\`) {
			break
		}
		a.fixed = append(a.fixed, name)
	}
	if !strings.Contains(text, "**") && !strings.Contains(text, "[") {
		a.depth = len(names)
	}
	if !a.dirs && names[len(names)-1] == "**" {
		a.glob += "/*" // lib/** does not match lib
	}
	a.glob = anyDepth().ReplaceAllString(classes.Replace(a.glob), "$1**/*$2")
	return a
}

// anyDepth matches the beginning of a name such as **.go, which means **/*.go.
var anyDepth = lazyregexp.New(`(\A|/)\*\*([^/])`)

// classes changes character classes so that negated ones match no slash, and that the first character may be a ].
var classes = strings.NewReplacer(`\\`, `\\`, `\[`, `\[`, "[!]", `[!/\]`, "[^]", `[!/\]`, "[!", "[!/", "[^", "[!/", "[]", `[\]`)

// matches reports whether a path matches. A pattern that ends in a slash only matches directories.
func (p pathPattern) matches(path string, dir bool) bool {
	return slices.ContainsFunc(p, func(a alternative) bool {
		return (dir || !a.dirs) && doublestar.MatchUnvalidated(a.glob, path)
	})
}

// mayHold reports whether a path below dir may match.
func (p pathPattern) mayHold(dir string) bool {
	names := strings.Split(dir, "/")
	return slices.ContainsFunc(p, func(a alternative) bool {
		n := min(len(a.fixed), len(names))
		return (a.depth == 0 || len(names) < a.depth) && slices.Equal(a.fixed[:n], names[:n])
	})
}
