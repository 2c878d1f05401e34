package programs

import (
	"slices"
	"strings"

	"github.com/toold/toold/internal/lazyregexp"
)

// gitRemote reports whether the subcommand has a repository argument, and describes it.
func (c *Command) gitRemote(s *spec, words []Word) bool {
	if len(c.Sub) == 0 || !s.inherits("remote") {
		return false
	}
	sub, operands := c.Sub[0], c.Words[len(c.Sub):]
	for _, w := range words {
		_, isHost, _ := remotePath(w.Text)
		switch {
		case c.namesNoRemote(operands, w):
		case strings.Contains(w.Text, "://") && strings.HasPrefix(w.Text, "-"):
			c.Operands = append(c.Operands, hostWords(w)...)
		case isHost:
			c.Operands = append(c.Operands, Operand{Word: w, Kind: Net})
		case sub == "clone" && !strings.HasPrefix(w.Text, "-"):
			c.Operands = append(c.Operands, Operand{Word: w, Kind: Read, Tree: true})
		}
	}
	added := slices.Equal(c.Sub[:min(2, len(c.Sub))], []string{"submodule", "add"})
	if added || sub == "clone" {
		c.Operands = append(c.Operands, clonedTo(operands)...)
	}
	c.Known = len(c.Operands) > 0
	return c.Known
}

// namesNoRemote reports whether a word certainly names no repository that is contacted: a refspec, or a URL that is
// only stored. ext::COMMAND is a command.
func (c *Command) namesNoRemote(operands []Word, w Word) bool {
	switch path := strings.Join(c.Sub, " "); {
	case strings.Contains(w.Text, "::"), c.MayHave("--multiple"):
		return false
	case path == "remote set-url":
		return true
	case path == "remote add":
		return !c.MayHave("-f")
	case !IsField("fetch pull push", path) || len(operands) == 0 || w == operands[0]:
		return false
	}
	unknown := func(f Flag) bool { return f.Dynamic || f.spec == nil && f.Name != "--overwrites" }
	return slices.Contains(operands[1:], w) && !slices.ContainsFunc(c.Flags, unknown)
}

// Checkout returns the only operand of git checkout, a revision or a path; "" if there is certainly none.
func (c *Command) Checkout() string {
	tracks := c.hasFlag("-t") && !c.undone("-t")
	begins := tracks || c.hasFlag("-b") || c.hasFlag("--orphan")
	if begins || len(c.Words) != 2 || c.Words[0].Text != "checkout" {
		return ""
	}
	if c.Words[1].Dynamic {
		return ""
	}
	return c.Words[1].Text
}

// gitIndex describes "git rm --cached", which changes no file.
func (r *reader) gitIndex(c *Command, s *spec, own []Word) bool {
	if s.name != "rm" || !c.hasFlag("--cached") || c.undone("--cached") {
		return false
	}
	r.byParser(c, s, own)
	for i := range c.Operands {
		c.Operands[i].Kind, c.Operands[i].Part = Read, PartNames
	}
	return true
}

func harmlessGlobals(s *spec, c *Command) bool {
	return !slices.ContainsFunc(c.Flags, func(f Flag) bool {
		if !f.isGlobal(s) || IsField(s.harmless, f.Name) {
			return false
		}
		known := f.HasValue && !f.Value.Dynamic
		return f.Name != "-c" || !known || !harmlessGitSetting(f.Value.Text)
	})
}

// isGlobal reports whether the flag precedes the subcommand.
func (f Flag) isGlobal(root *spec) bool { return f.spec != nil && root.globals[f.Name] == f.spec }

// verifies reports whether a word may be a format that runs gpg.program.
func verifies(argv []Word, i int) bool {
	named := func(w Word) bool {
		return strings.HasPrefix(w.Text, "--format") || strings.HasPrefix(w.Text, "--pretty")
	}
	unknown := argv[i].Dynamic && (named(argv[i]) || named(argv[i-1]))
	return unknown || signatures().MatchString(argv[i].Text)
}

var signatures = lazyregexp.New(`%[-+ ]?G|%\(signature`)

// gitConfigured marks settings before the subcommand that run commands.
func (c *Command) gitConfigured(root *spec) {
	for _, f := range c.Flags {
		name, value, _ := strings.Cut(f.Value.Text, "=")
		name = strings.ToLower(name)
		alias, command := strings.HasPrefix(name, "alias."), strings.HasPrefix(value, "!")
		sets := f.isGlobal(root) && IsField("-c --config-env", f.Name)
		switch {
		case !sets || harmlessGitSetting(f.Value.Text):
			continue
		case alias && !command:
			value = "git " + value
		case command:
			value = value[1:]
		}
		section, _, _ := strings.Cut(name, ".")
		unknown := alias && (f.Name != "-c" || f.Value.Dynamic)
		hidden := unknown || f.Value.Text == "" || IsField("include includeif help gc clean", section)
		if hidden && c.Opaque == "" {
			c.Opaque = "git is configured to do what its words do not show"
		}
		c.Runs = append(c.Runs, Run{Script: Word{Text: value, Dynamic: f.Value.Dynamic}, Language: "text"})
	}
}

// git adds what only commands of git have.
func (r *reader) git(c *Command, s *spec) {
	if !s.root().has("git") {
		return
	}
	c.gitConfigured(s.root())
	c.aliases()
	r.configures(c)
	c.pushed(s, r.argv)
	c.fetched()
}

// aliases adds what an alias that git config sets will run, since the script may use it next.
func (c *Command) aliases() {
	for i, w := range c.Words {
		if i > 0 && strings.HasPrefix(strings.ToLower(c.Words[i-1].Text), "alias.") && c.Words[0].Text == "config" {
			c.Runs = append(c.Runs, Run{Script: Word{Text: "git " + w.Text, Dynamic: w.Dynamic}, Language: "text"})
		}
	}
}

// pushed adds the flags that refspecs stand for: +a overwrites, :a removes.
func (c *Command) pushed(s *spec, argv []Word) {
	if len(c.Sub) == 0 || c.Sub[0] != "push" {
		return
	}
	for i, w := range argv {
		refspec, force := strings.CutPrefix(w.Text, "+")
		if force {
			c.Flags = append(c.Flags, Flag{Name: "-f", At: i, spec: s.flag("-f")})
		}
		if len(refspec) > 1 && refspec[0] == ':' {
			c.Flags = append(c.Flags, Flag{Name: "-d", At: i, spec: s.flag("-d")})
		}
	}
}

// fetched adds the flag --overwrites if refspecs move or prune references other than those of remotes.
func (c *Command) fetched() {
	if len(c.Sub) == 0 || !IsField("fetch pull", c.Sub[0]) {
		return
	}
	prunes := c.MayHave("-f") || c.MayHave("-p")
	for i, w := range c.Words[len(c.Sub):] {
		refspec, force := strings.CutPrefix(w.Text, "+")
		_, to, ok := strings.Cut(refspec, ":")
		repository := i == 0 && !force || strings.HasPrefix(to, "//")
		unnamed, tracked := to == "" && !w.Dynamic, strings.HasPrefix(to, "refs/remotes/")
		if !ok || repository || unnamed {
			continue
		}
		if !tracked && (force || prunes) {
			c.Flags = append(c.Flags, Flag{Name: "--overwrites"})
		}
	}
}

func isLocal(w Word) bool {
	_, isFile := fileURL(w)
	return isFile || w.Text != "" && strings.IndexByte("./~", w.Text[0]) >= 0
}

// clonedTo returns the directory that git clone creates: the last operand, or the name of the repository.
func clonedTo(operands []Word) []Operand {
	if len(operands) == 0 {
		return nil
	}
	w := operands[len(operands)-1]
	if strings.Contains(w.Text, ":") || len(operands) == 1 {
		name := strings.TrimSuffix(strings.TrimRight(w.Text, "/"), ".git")
		name = name[strings.LastIndexAny(name, "/:")+1:]
		w = Word{Text: name, Dynamic: w.Dynamic || name == ""}
	}
	return []Operand{{Word: w, Kind: Write, Tree: true}}
}

// gitSettings returns the hosts in options such as -c url.https://….
func gitSettings(words, own []Word) (out []Operand) {
	for _, w := range words[:max(len(words)-len(own), 0)] {
		out = append(out, hostWords(w)...)
	}
	return out
}

func harmlessGitSetting(s string) bool {
	name, value, _ := strings.Cut(strings.ToLower(s), "=")
	plain := name == "core.quotepath" || name == "core.pager" && value == "cat"
	return plain || strings.HasPrefix(name, "color.")
}

// configures adds the flag --runs to git config if git may then run something.
func (r *reader) configures(c *Command) {
	at := slices.Index(r.words, Word{Text: "config"})
	if len(c.Sub) > 0 && c.Sub[0] == "config" && setsGit(r.words[at+1:]) {
		c.Flags = append(c.Flags, Flag{Name: "--runs"})
	}
}

// setsText reports whether a git config can set nothing that runs.
func (c *Command) setsText() bool {
	return c.spec.root().has("git") && c.begins("config") && !c.hasFlag("--runs")
}

// setsGit reports whether the configuration may then run something.
func setsGit(words []Word) bool {
	var operands []string
	for _, w := range words {
		switch {
		case w.Many || w.Dynamic && len(operands) == 0:
			return true
		case strings.HasPrefix(w.Text, "--get"), IsField("--list -l", w.Text), len(operands) == 0 && IsField("get list", w.Text):
			return false
		case strings.HasPrefix(w.Text, "-"):
			if name, _, _ := strings.Cut(w.Text, "="); !IsField(textFlags, name) {
				return true
			}
		case len(operands) == 0 && w.Text == "rename-section":
			return true
		case !IsField("set unset", w.Text):
			operands = append(operands, strings.ToLower(w.Text))
		}
	}
	if len(operands) < 2 {
		return false // shows or removes a setting
	}
	section, _, _ := strings.Cut(operands[0], ".")
	odd := slices.ContainsFunc([]string{"templatedir", "driver", "remote"}, func(s string) bool { return strings.Contains(operands[0], s) })
	return odd || !IsField(textSections, section) && !IsField(textSettings, operands[0])
}

// textSections and textSettings are those of git's settings that run nothing, but for the odd ones. With other flags than
// textFlags git config reads other files or renames settings.
const (
	textFlags    = "--global --local --system --worktree --add --append --replace-all --unset --unset-all --all --bool --int --type --path -z --null --name-only --show-origin --show-scope --default --value --fixed-value --comment"
	textSections = "user author committer color advice pull push branch init fetch rebase merge commit tag log status column rerere stash i18n index"
	textSettings = "core.autocrlf core.eol core.safecrlf core.ignorecase core.filemode core.symlinks core.quotepath core.longpaths core.precomposeunicode core.abbrev core.bare core.commentchar core.whitespace diff.renames diff.algorithm diff.noprefix"
)
