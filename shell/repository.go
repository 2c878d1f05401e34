package shell

import (
	"path/filepath"
	"strings"

	"github.com/toold/toold/policy"
	"github.com/toold/toold/shell/programs"
)

// repository records that git runs in another repository than the workspace's, or in
// one that the script has made or changed: git runs programs that a repository's
// configuration names.
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

// namedRepository records that git is given a repository by name that the script may
// have made.
func (w *walker) namedRepository(args []word, s *state, source string) {
	for _, a := range args {
		if strings.HasPrefix(a.text, "--batch") {
			w.add(policy.Effect{Kind: policy.Read, Unknown: true, Source: source}) // cat-file takes names from its input
		}
		if _, path, ok := strings.Cut(a.text, ":"); ok && a.known() {
			w.fromTop(path, s, source)
		}
		if s.disk.changes() > 0 && strings.HasPrefix(a.text, "--git-dir") {
			w.code("`git` would obey the configuration of a repository that the script makes or changes", source)
		}
	}
}

// fromTop records, for the rules that ask and deny, the file that REVISION:PATH names
// from the top of the repository, wherever git runs.
func (w *walker) fromTop(path string, s *state, source string) {
	top := *s
	top.dirs = []string{w.workspace}
	for e := range w.pathEffects(policy.Read, path, &top) {
		e.Possible, e.Source = true, source
		w.add(e)
	}
}

// changedRepository reports whether git, in a directory, may find a repository that
// the script has made or changed.
func (w *walker) changedRepository(dir string, s *state) bool {
	if s.disk.changes() == 0 {
		return false
	}
	for d := dir; ; d = filepath.Dir(d) {
		if w.steps--; s.disk.mayBeRepository(d) {
			return true
		}
		if d == w.workspace || d == "/" || d == "." {
			return false
		}
	}
}

// foreign reports whether git, in a directory, would find another repository than the
// workspace's, or may. It remembers the answers.
func (w *walker) foreign(dir string) bool {
	var asked []string
	found, known := false, false
	for d := dir; d != w.workspace && !known && !found; d = filepath.Dir(d) {
		if found, known = w.repositories[d]; known {
			break
		}
		if w.steps -= 2; w.steps <= 0 {
			w.exhausted()
			return true
		}
		asked = append(asked, d)
		bare := w.exists(d+"/HEAD") && w.isDir(d+"/objects")
		found = d == "" || d == "/" || bare || w.exists(d+"/.git")
	}
	for _, d := range asked {
		w.repositories[d] = found
	}
	return found
}

// gitDirectory takes "git -C directory" for what it means: git, run there.
func (w *walker) gitDirectory(args []word, s *state) ([]word, *state) {
	first, rest := args[0], args[1:]
	for len(rest) > 1 && rest[0].is("-C") && !rest[1].many && !rest[1].glob {
		if w.steps -= 3; w.steps <= 0 {
			w.exhausted()
			break
		}
		if len(rest) == len(args)-1 {
			s = w.fork(s)
			s.touched = &touched{}
		}
		w.cd([]word{{text: "--"}, rest[1]}, s, "git -C")
		rest = rest[2:]
	}
	if len(rest) == len(args)-1 {
		return args, s
	}
	return append([]word{first}, rest...), s
}

// written records that a program or script is run that this script writes itself.
func (w *walker) written(name string, s *state, source string) {
	if s.disk.changes() == 0 {
		return
	}
	for _, file := range w.fromDirs(name, s) {
		if s.disk.wrote(file) {
			w.code("it runs a file that the script itself writes", source)
			return
		}
	}
}

// noteWrite keeps in mind that an effect writes.
func (w *walker) noteWrite(e policy.Effect, s *state) {
	if e.Kind != policy.Write || e.Unknown || e.Possible {
		return
	}
	s.disk.write(e.Path, e.Tree)
	if e.Canonical != e.Path && e.Canonical != "" {
		s.disk.write(e.Canonical, e.Tree)
	}
}

// configured records what git does that its words alone do not say: what its settings make
// of them, and that an operand of checkout is a path.
func (w *walker) configured(c *programs.Command, s *state, source string) {
	if c.Opaque != "" && !c.Anything {
		w.opaque(c.Opaque, source)
	}
	if len(c.Words) != 2 || c.Words[0].Text != "checkout" || c.Words[1].Dynamic || c.Words[1].Text == "" {
		return
	}
	for _, path := range w.fromDirs(c.Words[1].Text, s) {
		if w.exists(path) {
			argv := []policy.Word{{Text: "git"}, {Text: "checkout"}, {Text: "--"}, c.Words[1]}
			w.add(policy.Effect{Kind: policy.Exec, Argv: argv, Dirs: s.dirs, Possible: true, Source: source})
		}
	}
}

// variableRuns records the command that is in a variable for programs which run it.
func (w *walker) variableRuns(name string, v value) {
	_, last, _ := strings.Cut(strings.TrimPrefix(name, "GIT_"), "_")
	switch {
	case v.text == "" && v.known():
	case strings.HasPrefix(name, "GIT_CONFIG") && name != "GIT_CONFIG_NOSYSTEM" && v != (value{text: "/dev/null"}):
		w.opaque("the configuration of git is in a variable", name)
	case v.known() && (strings.HasPrefix(name, "BASH_FUNC_") || listed(scriptNames, name) || listed("EDITOR COMMAND PAGER", last)):
		argv := []policy.Word{{Text: "bash"}, {Text: "-c"}, {Text: v.text}}
		w.add(policy.Effect{Kind: policy.Exec, Argv: argv, Possible: true, Source: name})
	}
}

// scriptNames are variables that shells and git take commands from.
const scriptNames = "BASH_ENV ENV PS0 PS1 PS4 PROMPT_COMMAND VISUAL EDITOR PAGER GIT_EDITOR GIT_PAGER GIT_EXTERNAL_DIFF GIT_ASKPASS GIT_SSH GIT_PROXY_COMMAND"
