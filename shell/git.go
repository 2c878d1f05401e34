package shell

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toold/toold/internal/paths"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/shell/programs"
)

// maxAliases limits how many aliases of git one analysis looks up.
const maxAliases = 16

// aliased follows the aliases that git may use for a command that it does not have: those of its options and of its
// configuration (git-config(1), alias.*).
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
	w.aliasInVariables(args, c.Alias, s, source)
	dirs := s.dirs
	if dirs == nil {
		dirs = []string{"/"}
	}
	for _, dir := range dirs {
		if w.foreign(w.resolve(dir)) {
			dir = "/" // a call may have created that repository; repository reports it
		}
		if w.asked++; w.asked > maxAliases {
			w.opaque("too many words may be aliases of git", source)
			return
		}
		text, err := w.resolver.GitAlias(dir, name, w.env)
		switch {
		case err != nil:
			w.opaque("`git "+name+"` may be an alias, and git's configuration cannot be read: "+err.Error(), source)
			w.asked = maxAliases // the lookup may have taken long
		case text != "":
			w.alias(value{text: text}, args, c.Alias, s, source)
		}
	}
}

// aliasInVariables follows aliases of GIT_CONFIG_KEY_0 and so on.
func (w *walker) aliasInVariables(args []word, at int, s *state, source string) {
	for n := range maxAliases {
		if setting := s.get(fmt.Sprint("GIT_CONFIG_KEY_", n)); strings.EqualFold(setting.text, "alias."+args[at].text) {
			w.alias(s.get(fmt.Sprint("GIT_CONFIG_VALUE_", n)).value, args, at, s, source)
		}
	}
}

// alias follows one alias, whose name is args[at]. One that begins with "!" is a script for sh, which starts at the
// top of the repository if there is one. Another one is replaced by its words.
func (w *walker) alias(v value, args []word, at int, s *state, source string) {
	script, isScript := strings.CutPrefix(v.text, "!")
	switch {
	case v.dynamic:
		w.unknownCommand("an alias of git is known only when it runs", source)
	case isScript:
		argv := append([]policy.Word{{Text: script}}, policyWords(args[at+1:])...)
		run := programs.Run{Script: policy.Word{Text: script + ` "$@"`}, Language: "sh", Argv: argv}
		top := w.fork(s)
		top.dirs = slices.Clone(s.dirs)
		joinDirs(&top.dirs, []string{w.workspace})
		w.start(args, run, top, source)
	case strings.ContainsAny(v.text, `'"\`):
		w.opaque("an alias of git is split by rules of its own", source)
	default:
		words := slices.Clone(args[:at])
		for field := range strings.FieldsSeq(v.text) {
			words = append(words, plainWord(field))
		}
		w.external(append(words, args[at+1:]...), s, source)
	}
}

// repository reports that git may use configuration from outside of the workspace's.
func (w *walker) repository(s *state, source string) {
	if s.dirs == nil {
		w.code("`git` runs in a directory known only when it runs", source)
		return
	}
	for _, dir := range s.dirs {
		real := w.resolve(dir)
		switch {
		case w.changedRepository(dir, s) || real != dir && w.changedRepository(real, s):
			w.code("`git` would obey the configuration of a repository that the script makes or changes", source)
			return
		case w.foreign(real):
			w.code("`git` would obey the configuration of another repository than the workspace's", source)
			return
		}
	}
}

// namedRepository handles repositories and REVISION:PATH among git's arguments.
func (w *walker) namedRepository(args []word, s *state, source string) {
	for _, a := range args {
		if strings.HasPrefix(a.text, "--batch") {
			w.add(policy.Effect{Kind: policy.Read, Unknown: true, Source: source}) // cat-file reads names from its standard input
		}
		if _, path, ok := strings.Cut(a.text, ":"); ok && a.known() {
			if _, name, magic := strings.Cut(path, ")"); magic && path[0] == '(' { // :(top)NAME
				path = name
			}
			top := *s
			top.dirs = []string{w.workspace}
			w.possible(policy.Read, path, &top, source)
		}
		if s.disk.changes() > 0 && strings.HasPrefix(a.text, "--git-dir") {
			w.code("`git` would obey the configuration of a repository that the script makes or changes", source)
		}
	}
}

func (w *walker) changedRepository(dir string, s *state) bool {
	for d := range paths.Up(dir) {
		if w.steps--; s.disk.changes() == 0 || s.disk.mayBeRepository(d) || d == w.workspace {
			return s.disk.mayBeRepository(d)
		}
	}
	return false
}

// foreign reports whether git may find a repository other than the workspace's.
func (w *walker) foreign(dir string) bool {
	for d := dir; d != w.workspace; d = filepath.Dir(d) {
		if w.steps -= 4; w.steps <= 0 {
			return true
		}
		bare := w.exists(d+"/HEAD") && w.isDir(d+"/objects", 0)
		if bare || len(d) < 2 || w.exists(d+"/.git") {
			return true
		}
	}
	return false
}

func (w *walker) gitDirectory(args []word, s *state) ([]word, *state) {
	out := slices.Clone(args[:1])
	for i := 1; i < len(args); i++ {
		switch next := i+1 < len(args); {
		case !strings.HasPrefix(args[i].text, "-"):
			return append(out, args[i:]...), s
		case next && args[i].is("-C") && !args[i+1].several():
			if w.steps -= 3; w.steps <= 0 {
				return append(out, args[i:]...), s
			}
			s = w.startedIn(args[i+1], s, "git -C")
			i++
		default:
			out = append(out, args[i])
			if next && args[i].known() && listed("-c --git-dir --work-tree --namespace --super-prefix --config-env --attr-source", args[i].text) {
				i++
				out = append(out, args[i])
			}
		}
	}
	return out, s
}

// configured adds the effects of git settings, and checkout of a path.
func (w *walker) configured(c *programs.Command, s *state, source string) {
	if c.Opaque != "" && !c.Anything {
		w.opaque(c.Opaque, source)
	}
	if len(c.Words) > 1 && listed("push fetch pull", c.Words[0].Text) {
		for _, a := range c.Words[1:] {
			w.pushesTo(a, s, source)
		}
	}
	if name := c.Checkout(); name != "" {
		is := func(path string) bool { return w.exists(path) || s.disk.wrote(path) }
		elsewhere := c.MayHave("--work-tree") || c.MayHave("--git-dir")
		unknown := elsewhere || s.dirs == nil && strings.Contains(name, ".")
		if unknown || slices.ContainsFunc(w.fromDirs(name, s), is) {
			argv := []policy.Word{{Text: "git"}, {Text: "checkout"}, {Text: "--"}, c.Words[1]}
			w.add(policy.Effect{Kind: policy.Exec, Argv: argv, Dirs: s.dirs, Possible: true, Source: source})
		}
	}
}

// pushesTo reports that git runs the hooks of a local repository.
func (w *walker) pushesTo(a policy.Word, s *state, source string) {
	for _, path := range w.fromDirs(a.Text, s) {
		other := !a.Dynamic && w.isDir(path, 0) && w.foreign(path)
		if other || !a.Dynamic && s.disk.mayBeRepository(path) {
			w.code("`git` would run the hooks of another repository than the workspace's", source)
		}
	}
}
