package programs

import (
	"maps"
	"slices"
	"strings"
)

const maxSpellings = 64

// Spellings returns equivalent commands with other aliases, flags and global options, for testing rules.
func Spellings(words []string) (list [][]string) {
	argv := Words(words)
	s, rest := find(argv)
	if s == nil || len(rest) != len(words)-1 {
		return nil
	}
	list = append(list, s.otherNames(words)...)
	c := Spell(argv)
	for _, f := range c.Flags {
		list = append(list, f.otherSpellings(words)...)
	}
	if len(s.subs)+len(s.names) > 0 {
		if global := s.anyGlobal(); global != nil {
			list = append(list, slices.Concat(words[:1], global, words[1:]))
		}
	}
	return list[:min(len(list), maxSpellings)]
}

// Words converts strings to known words.
func Words(texts []string) []Word {
	argv := make([]Word, len(texts))
	for i, text := range texts {
		argv[i].Text = text
	}
	return argv
}

func (s *spec) otherNames(words []string) (list [][]string) {
	for _, name := range slices.Sorted(maps.Keys(s.names)) {
		canonical, other := s.names[name], strings.Fields(name)
		n := len(canonical)
		if len(words) > n && slices.Equal(words[1:1+n], canonical) && !slices.Equal(other, canonical) {
			list = append(list, slices.Concat(words[:1], other, words[1+n:]))
		}
	}
	return list
}

func (f Flag) otherSpellings(words []string) (list [][]string) {
	if f.spec == nil || !slices.Contains(f.spec.all, strings.SplitN(words[f.At], "=", 2)[0]) {
		return nil
	}
	end := f.At + 1
	_, _, attached := strings.Cut(words[f.At], "=")
	if f.HasValue && !attached {
		end++
	}
	for _, name := range f.spec.all {
		var with [][]string
		switch {
		case !f.HasValue:
			with = [][]string{{name}}
		case f.spec.only || end > len(words):
			return nil
		case strings.HasPrefix(name, "--"):
			with = [][]string{{name, f.Value.Text}, {name + "=" + f.Value.Text}}
		default:
			with = [][]string{{name, f.Value.Text}}
		}
		for _, spelled := range with {
			if other := slices.Concat(words[:f.At], spelled, words[end:]); !slices.Equal(other, words) {
				list = append(list, other)
			}
		}
	}
	return list
}

func (s *spec) anyGlobal() []string {
	for _, name := range slices.Sorted(maps.Keys(s.globals)) {
		if f := s.globals[name]; f.values == ":" && !f.only {
			return []string{name, "sample"}
		}
	}
	for name := range strings.FieldsSeq(s.harmless) {
		return []string{name}
	}
	return nil
}

// canonical replaces an alias of a subcommand at the beginning of words by its own words.
func (s *spec) canonical(words []Word) []Word {
	for n := min(2, len(words)); n > 0; n-- {
		name := joined(words[:n])
		if path, ok := s.names[name]; ok {
			return prepend(path, words[n:])
		}
	}
	first := words[0].Text
	if s.subs[first] != nil || IsField(s.deeper, first) {
		return words
	}
	if s.has("abbreviates") {
		if path := s.abbreviated(kebab(first)); path != nil {
			return prepend(path, words[1:])
		}
	}
	if s.has("scripts") && !strings.HasPrefix(first, "-") {
		return prepend([]string{"run"}, words)
	}
	return words
}

func joined(words []Word) string {
	var b strings.Builder
	for i, w := range words {
		if w.Dynamic {
			return ""
		}
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(w.Text)
	}
	return b.String()
}

func prepend(path []string, rest []Word) []Word {
	out := make([]Word, 0, len(rest)+len(path))
	for _, word := range path {
		out = append(out, Word{Text: word})
	}
	return append(out, rest...)
}

// abbreviated returns the only subcommand with a prefix, or nil.
func (s *spec) abbreviated(text string) (path []string) {
	i, _ := slices.BinarySearch(s.firsts, text)
	for ; i < len(s.firsts) && strings.HasPrefix(s.firsts[i], text); i++ {
		full, ok := s.names[s.firsts[i]]
		if !ok {
			full = []string{s.firsts[i]}
		}
		if path != nil && !slices.Equal(path, full) {
			return nil
		}
		path = full
	}
	return path
}

// kebab converts runScript to run-script, as npm does.
func kebab(s string) string {
	if strings.ToLower(s) == s {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if r >= 'A' && r <= 'Z' {
			b.WriteByte('-')
			r += 'a' - 'A'
		}
		b.WriteRune(r)
	}
	return b.String()
}
