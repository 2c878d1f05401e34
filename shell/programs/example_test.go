package programs

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/toold/toold/internal/must"
)

// words splits an example: quotes keep blanks, … at the end marks what is known only
// at run time, …… what may become several words.
func words(command string) (out []Word) {
	for i, part := range strings.Split(command, `"`) {
		if i%2 == 1 {
			out = append(out, Word{Text: part})
			continue
		}
		for f := range strings.FieldsSeq(part) {
			text, many := strings.CutSuffix(f, "……")
			text, dynamic := strings.CutSuffix(text, "…")
			out = append(out, Word{Text: text, Dynamic: dynamic || many, Many: many})
		}
	}
	return out
}

func plain(words ...Word) string {
	texts := make([]string, len(words))
	for i, w := range words {
		texts[i] = w.Text
		if w.Dynamic {
			texts[i] += "…"
		}
	}
	return strings.Join(texts, " ")
}

// facts lists what is known of a command of such words, as the examples write it.
func facts(argv []Word, c Command) (out []string) {
	add := func(format string, args ...any) { out = append(out, strings.TrimSpace(fmt.Sprintf(format, args...))) }
	var flags string
	for _, f := range c.Flags {
		if f.Name != "--" {
			flags += " " + f.Name
		}
	}
	add("flags%s", flags)
	add("sub %s", strings.Join(c.Sub, " "))
	add("name %s", c.Name)
	add("covers %s", []string{"none", "read", "write"}[c.Covers])
	for _, o := range c.Operands {
		tree := ""
		if o.Tree || o.Part == PartNames {
			tree = map[string]string{"": "tree ", PartNames: "names "}[o.Part]
		}
		part := o.Part
		if part == PartNames {
			part = ""
		} else if o.Tree {
			tree = "tree "
		}
		kind := []string{o.Role, "read", "write", "net"}[o.Kind]
		if o.Role == "script" {
			kind = "script read"
		}
		add("%s %s%s %s", kind, tree, plain(o.Word), part)
	}
	for _, r := range c.Runs {
		switch {
		case r.Language != "":
			if add("script %s", r.Script.Text); r.Login {
				add("login")
			}
		default:
			add("runs %s", plain(r.Argv...))
		}
		if r.Adds {
			add("adds")
		}
		if r.Replaces != "" {
			add("replaces %s", r.Replaces)
		}
	}
	for _, at := range c.Unsafe {
		add("unsafe %s", argv[at].Text)
	}
	for name, is := range map[string]bool{"loses": c.Loses != "", "leaves": c.Leaves, "network": c.Network, "opaque": c.Opaque != "", "code": c.Code, "known": c.Known, "input": c.Input, "fetches": c.Fetches} {
		if is {
			add("%s", name)
		}
	}
	return out
}

// TestTheExamplesOfAllSpecificationsHold checks the example lines, of which each program has one.
func TestTheExamplesOfAllSpecificationsHold(t *testing.T) {
	t.Parallel()
	exemplified := make(map[string]bool)
	files := must.Get(fs.Glob(texts, "specs/*.txt"))(t)
	for _, file := range files {
		text := must.Get(texts.ReadFile(file))(t)
		var names []string
		for line := range strings.Lines(string(text)) {
			key, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
			switch key {
			case "program":
				names = strings.Split(rest, ",")
			case "example":
				checkExample(t, file, rest)
				for _, name := range names {
					exemplified[name] = true
				}
			}
		}
	}
	for name := range library() {
		if program(name).as == nil && !exemplified[name] {
			t.Errorf("%s has no example", name)
		}
	}
}

func checkExample(t *testing.T, file, example string) {
	command, wants, _ := strings.Cut(example, " -> ")
	argv := words(command)
	got := facts(argv, Parse(argv))
	for want := range strings.SplitSeq(wants, ";") {
		text, not := strings.CutPrefix(strings.TrimSpace(want), "not ")
		if slices.Contains(got, text) == not {
			t.Errorf("%s: %s: %q is wrong:\n  %s", file, command, strings.TrimSpace(want), strings.Join(got, "\n  "))
		}
	}
}
