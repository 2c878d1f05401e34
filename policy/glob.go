package policy

import (
	"errors"
	"fmt"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/toold/toold/shell/programs"
)

type glob struct {
	prefix string   // without a final slash; "" for the root
	rest   []string // components after prefix; "**" is any number of them
	fold   bool
}

// compileGlob compiles an absolute pattern without braces. A pattern that begins with ** matches from the root.
func compileGlob(pattern string, o Options, fold bool) (glob, error) {
	text := expandPlaces(pattern, o)
	if strings.HasPrefix(text, "**") {
		text = "/" + text
	}
	parts := strings.Split(strings.Trim(text, "/"), "/")
	if err := checkGlob(pattern, text, parts); err != nil {
		return glob{}, err
	}
	literal := 0
	for literal < len(parts) && !hasMeta(parts[literal]) {
		literal++
	}
	g := glob{fold: fold, rest: parts[literal:]}
	g.prefix = strings.TrimSuffix("/"+strings.Join(parts[:literal], "/"), "/")
	if o.Resolve != nil && g.prefix != "" {
		g.prefix = strings.TrimSuffix(o.Resolve(g.prefix), "/")
	}
	if fold {
		g.prefix = strings.ToLower(g.prefix)
		for i, c := range g.rest {
			g.rest[i] = strings.ToLower(c)
		}
	}
	return g, nil
}

func checkGlob(pattern, text string, parts []string) error {
	switch {
	case strings.Contains(text, "${"):
		return fmt.Errorf("unknown placeholder in %q: expected ${workspace}, ${home} or ${tmp}", pattern)
	case !strings.HasPrefix(text, "/"):
		return fmt.Errorf("path pattern %q is relative: begin with /, ~/, ** or ${workspace}", pattern)
	case len(text) > 1 && strings.HasSuffix(text, "/"):
		return fmt.Errorf("path pattern %q ends with /: write %q for the folder with all that is in it", pattern, pattern+"**")
	case !doublestar.ValidatePattern(text):
		return fmt.Errorf("path pattern %q is malformed", pattern)
	}
	for _, part := range parts {
		empty := part == "" && len(parts) > 1
		if empty || part == "." || part == ".." {
			return fmt.Errorf("path pattern %q is not clean: it has an empty, . or .. component", pattern)
		}
		if part != "**" && strings.Contains(part, "**") {
			return fmt.Errorf("path pattern %q: ** must be alone between slashes", pattern)
		}
	}
	return nil
}

// expandPlaces replaces placeholders. Those without a value remain, for callers to reject.
func expandPlaces(s string, o Options) string {
	if s == "~" || strings.HasPrefix(s, "~/") {
		s = "${home}" + s[1:]
	}
	for _, p := range []struct{ name, value string }{
		{"${workspace}", o.Workspace}, {"${home}", o.Home}, {"${tmp}", o.Tmp},
	} {
		if strings.HasPrefix(p.value, "/") {
			s = strings.ReplaceAll(s, p.name, strings.TrimRight(escapeMeta(p.value), "/"))
		}
	}
	return s
}

func escapeMeta(path string) string { return metaEscapes.Replace(path) }

var metaEscapes = strings.NewReplacer("*", `\*`, "?", `\?`, "[", `\[`, "]", `\]`, "{", `\{`, "}", `\}`, `\`, `\\`)

func hasMeta(s string) bool { return strings.ContainsAny(s, metas) }

const metas = `*?[]{}\`

// match matches an absolute clean path. "dir/**" matches dir too.
func (g *glob) match(path string) bool {
	rest, ok := g.below(path)
	return ok && matchParts(g.rest, rest)
}

func (g *glob) covers(path string) bool {
	rest, ok := g.below(path)
	if !ok || len(g.rest) == 0 || g.rest[len(g.rest)-1] != "**" {
		return false
	}
	return matchParts(g.rest, rest)
}

// reaches reports whether the pattern selects something specific below path. Matching by ** alone does not count:
// "**/.env" would otherwise reach every directory.
func (g *glob) reaches(path string) bool {
	path = strings.TrimSuffix(g.folded(path), "/")
	if len(path) < len(g.prefix) {
		return strings.HasPrefix(g.prefix, path+"/")
	}
	rest, ok := g.below(path)
	if rest == "" {
		return ok && len(g.rest) > 0
	}
	for n := 1; ok && n < len(g.rest); n++ {
		if last := g.rest[n-1]; last != "**" && matchName(last, baseName(rest)) && matchParts(g.rest[:n], rest) {
			return true
		}
	}
	return false
}

// holds reports whether the pattern may match within a part of a tree; see Effect.Part.
func (g *glob) holds(part string) bool {
	last := g.prefix
	if len(g.rest) > 0 {
		last = g.rest[len(g.rest)-1]
	}
	switch {
	case strings.Trim(part, programs.PartSome) == "" || last == "**":
		return true
	case part == PartNames:
		return false // only names are read
	}
	end := strings.ToLower(last[strings.LastIndexAny(last, `*?[]\/`)+1:])
	part = strings.ToLower(part)
	return strings.HasSuffix(end, part) || strings.HasSuffix(part, end)
}

func (g *glob) folded(path string) string {
	if g.fold {
		return strings.ToLower(path)
	}
	return path
}

func (g *glob) below(path string) (string, bool) {
	rest, ok := strings.CutPrefix(g.folded(path), g.prefix)
	if !ok || rest != "" && rest[0] != '/' {
		return "", false
	}
	return strings.Trim(rest, "/"), true
}

func matchParts(parts []string, path string) bool {
	for i, part := range parts {
		if part == "**" {
			return matchAnyDepth(parts[i+1:], path)
		}
		name, rest, _ := strings.Cut(path, "/")
		if path == "" || !matchName(part, name) {
			return false
		}
		path = rest
	}
	return path == ""
}

func matchAnyDepth(parts []string, path string) bool {
	if len(parts) == 0 {
		return true
	}
	begin := parts[0]
	if hasMeta(begin) {
		begin = ""
	}
	for tail, more := path, true; more; _, tail, more = strings.Cut(tail, "/") {
		if strings.HasPrefix(tail, begin) && matchParts(parts, tail) {
			return true
		}
	}
	return false
}

func matchName(pattern, name string) bool {
	if !hasMeta(pattern) {
		return pattern == name
	}
	ok, err := doublestar.Match(pattern, name)
	return err == nil && ok
}

const maxAlternatives = 256

var errBraces = errors.New("unbalanced braces, or more than 256 alternatives")

// ExpandBraces returns the alternatives of a text, such as abd and acd of a{b,c}d. A backslash quotes the next byte.
func ExpandBraces(s string) ([]string, error) {
	var cuts []int // the first { and its commas
	depth := 0
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\':
			i++
		case c == '{' && depth == 0 && strings.HasSuffix(s[:i], "$"): // placeholder
			if end := strings.IndexByte(s[i:], '}'); end > 0 {
				i += end
			} else {
				depth++
			}
		case c == '{':
			if depth++; depth == 1 {
				cuts = append(cuts, i)
			}
		case c == ',' && depth == 1:
			cuts = append(cuts, i)
		case c == '}':
			if depth--; depth <= 0 {
				return expandAt(s, append(cuts, i))
			}
		}
	}
	if depth != 0 {
		return nil, errBraces
	}
	return []string{s}, nil
}

func expandAt(s string, cuts []int) (out []string, err error) {
	if len(cuts) < 2 {
		return nil, errBraces
	}
	for i, end := range cuts[1:] {
		more, err := ExpandBraces(s[cuts[i]+1:end] + s[cuts[len(cuts)-1]+1:])
		if err != nil || len(out)+len(more) > maxAlternatives {
			return nil, errBraces
		}
		for _, m := range more {
			out = append(out, s[:cuts[0]]+m)
		}
	}
	return out, nil
}
