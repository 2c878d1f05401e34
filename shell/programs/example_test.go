package programs

import (
	"fmt"
	"slices"
	"strings"
	"testing"
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

func TestTheExamplesOfAllSpecificationsHold(t *testing.T) {
	t.Parallel()
	for _, s := range everyProgram() {
		checkExamples(t, s)
	}
}

func checkExamples(t *testing.T, s *spec) {
	for _, e := range s.examples {
		argv := words(e.command)
		got := facts(argv, Parse(argv))
		for want := range strings.SplitSeq(e.want, ";") {
			text, not := strings.CutPrefix(strings.TrimSpace(want), "not ")
			if slices.Contains(got, text) == not {
				t.Errorf("%s: %s: %q is wrong:\n  %s", e.file, e.command, strings.TrimSpace(want), strings.Join(got, "\n  "))
			}
		}
	}
	for _, sub := range s.subs {
		checkExamples(t, sub)
	}
}
