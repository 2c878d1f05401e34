package shell

import (
	"slices"
	"strings"

	"github.com/toold/toold/policy"
	"github.com/toold/toold/shell/programs"
)

// maxAliases bounds how often one analysis asks for aliases of git.
const maxAliases = 16

// aliased follows the aliases that git may take for a command that it does not have: of its
// options and of its configuration (git-config(1), alias.*).
func (w *walker) aliased(args []word, c *programs.Command, s *state, source string) {
	if c.Alias <= 0 || c.Alias >= len(args) || slices.Contains(w.aliases, args[c.Alias].text) {
		return
	}
	name := args[c.Alias].text
	w.aliases = append(w.aliases, name)
	defer func() { w.aliases = w.aliases[:len(w.aliases)-1] }()
	for _, f := range c.Flags {
		setting, text, _ := strings.Cut(f.Value.Text, "=")
		if f.Name == "-c" && f.HasValue && strings.EqualFold(setting, "alias."+name) {
			w.alias(value{text: text, dynamic: f.Value.Dynamic}, args, c.Alias, s, source)
		}
	}
	dirs := s.dirs
	if dirs == nil {
		dirs = []string{"/"}
	}
	for _, dir := range dirs {
		if w.asked++; w.asked > maxAliases {
			w.opaque("too many words may be aliases of git", source)
			return
		}
		text, err := w.resolver.GitAlias(dir, name, w.env)
		switch {
		case err != nil:
			w.opaque("`git "+name+"` may be an alias, and git's configuration cannot be read: "+err.Error(), source)
		case text != "":
			w.alias(value{text: text}, args, c.Alias, s, source)
		}
	}
}

// alias follows one alias, whose name is args[at]. One that begins with "!" is a script of sh,
// started at the top of the repository; another has more words of git.
func (w *walker) alias(v value, args []word, at int, s *state, source string) {
	script, isScript := strings.CutPrefix(v.text, "!")
	switch {
	case v.dynamic:
		w.opaque("an alias of git is known only when it runs", source)
	case isScript:
		argv := append([]policy.Word{{Text: script}}, policyWords(args[at+1:])...)
		run := programs.Run{Script: policy.Word{Text: script + ` "$@"`}, Language: "sh", Argv: argv}
		w.start(args, run, s, source)
	case strings.ContainsAny(v.text, `'"\`):
		w.opaque("an alias of git is split by rules of its own", source)
	default:
		words := slices.Clone(args[:at])
		for field := range strings.FieldsSeq(v.text) {
			words = append(words, word{text: field})
		}
		w.external(append(words, args[at+1:]...), s, source)
	}
}
