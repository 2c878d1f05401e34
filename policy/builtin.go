package policy

import (
	_ "embed"
	"slices"
	"strings"
	"sync"

	"github.com/toold/toold/shell/programs"
)

//go:embed builtin.txt
var builtinText string

type builtins struct {
	lists           map[string][]string
	commands, paths []Rule
}

var builtin = sync.OnceValue(func() *builtins {
	b := &builtins{lists: make(map[string][]string)}
	for stanza := range strings.SplitSeq(builtinText, "\n\n") {
		var lines []string
		for line := range strings.Lines(stanza) {
			if name, list, ok := strings.Cut(line, " = "); ok {
				b.lists[name] = append(b.lists[name], strings.Fields(list)...)
			} else if line[0] != '#' {
				lines = append(lines, strings.TrimSpace(line))
			}
		}
		if len(lines) > 0 {
			b.rule(lines[0], lines[1:])
		}
	}
	return b
})

func (b *builtins) rule(head string, patterns []string) {
	head, reason, _ := strings.Cut(head, ": ")
	words := strings.Fields(head)
	r := Rule{ID: words[1], Reason: reason, NoMask: slices.Contains(words, "nomask")}
	if words[2] == "ask" {
		r.Action = Ask
	}
	for _, kind := range []Kind{Read, Write} {
		if slices.Contains(words, kind.String()) {
			r.Ops = append(r.Ops, kind)
		}
	}
	if len(r.Ops) == 0 {
		r.Run = patterns
		b.commands = append(b.commands, r)
		return
	}
	text := strings.Join(patterns, " ")
	for name, list := range b.lists {
		text = strings.ReplaceAll(text, "@"+name, "{"+strings.Join(list, ",")+"}")
	}
	r.Paths = strings.Fields(text)
	b.paths = append(b.paths, r)
}

func builtinRules(o Options) (commands, paths []Rule) {
	own := Rule{ID: "builtin:toold", Reason: "these are the daemon's own files; changing or reading them would undo its decisions"}
	for _, path := range o.Protected {
		own.Paths = append(own.Paths, literalGlob(path, true))
	}
	return builtin().commands, append(slices.Clip(builtin().paths), own)
}

// Autorun returns the names of files and directories in a project that programs run or read as configuration. ".git/"
// stands for every git directory, ".git" for the file that names one.
func Autorun() []string {
	names := []string{".git"}
	for _, name := range builtin().lists["runs"] {
		names = append(names, ".git/"+name)
	}
	return slices.Concat(names, builtin().lists["obeyed"], builtin().lists["nested"])
}

// IsDangerousEnv reports whether a variable can change what programs run, load or contact. Wildcards do not allow it.
func IsDangerousEnv(name string) bool {
	lists := builtin().lists
	return matchesAny(lists["dangerous"], name) && !matchesAny(lists["neutral"], name)
}

// matchesAny reports whether a pattern matches s. * matches any text.
func matchesAny(patterns []string, s string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return programs.Matches(p, s) })
}
