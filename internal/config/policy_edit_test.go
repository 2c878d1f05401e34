package config

import (
	"strings"
	"testing"

	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/policy"
)

// newRule is the change that adds a rule about a command.
func newRule(id, run string) policy.Change {
	return policy.Change{Section: "commands", Rule: policy.Rule{ID: id, Action: policy.Allow, Run: []string{run}}}
}

func exception(id string, texts ...string) policy.Change {
	return policy.Change{Section: "except", At: id, Texts: texts}
}

const added = "  # by me\n  - {id: new, decision: allow, run: [\"make \\\"a\\\"\"]}\n"

func TestAnEditKeepsTheFileAsItIsWritten(t *testing.T) {
	t.Parallel()
	rule, variable := newRule("new", `make "a"`), policy.Change{Section: "env.allow", Texts: []string{"FOO"}}
	for name, c := range map[string]struct {
		change    policy.Change
		src, want string
	}{
		"no commands":           {rule, "version: 1\n", "version: 1\ncommands:\n" + added},
		"no end of line":        {rule, "version: 1", "version: 1\ncommands:\n" + added},
		"with comments":         {rule, "# mine\nversion: 1\ncommands: # all\n  # builds\n  - id: b # x\n    decision: ask\n    run: [b]\n# end\n", "# mine\nversion: 1\ncommands: # all\n" + added + "  # builds\n  - id: b # x\n    decision: ask\n    run: [b]\n# end\n"},
		"without indentation":   {rule, "version: 1\ncommands:\n- {id: b, decision: ask, run: [b]}\n", "version: 1\ncommands:\n" + strings.ReplaceAll(strings.TrimPrefix(added, "  "), "\n  ", "\n") + "- {id: b, decision: ask, run: [b]}\n"},
		"an empty list":         {rule, "version: 1\ncommands: []\nname: x\n", "version: 1\n# by me\ncommands: [{id: new, decision: allow, run: [\"make \\\"a\\\"\"]}]\nname: x\n"},
		"nothing":               {rule, "version: 1\ncommands:\nname: x\n", "version: 1\ncommands:\n" + added + "name: x\n"},
		"a list in brackets":    {rule, "version: 1\ncommands: [{id: é, decision: ask, run: [b]}] # c\n", "version: 1\n# by me\ncommands: [{id: new, decision: allow, run: [\"make \\\"a\\\"\"]}, {id: é, decision: ask, run: [b]}] # c\n"},
		"brackets over lines":   {rule, "version: 1\ncommands: [\n  {id: b, decision: ask, run: [b]},\n]\n", "version: 1\n# by me\ncommands: [{id: new, decision: allow, run: [\"make \\\"a\\\"\"]}, \n  {id: b, decision: ask, run: [b]},\n]\n"},
		"JSON":                  {rule, "{\"version\": 1, \"commands\": []}\n", "# by me\n{\"version\": 1, \"commands\": [{id: new, decision: allow, run: [\"make \\\"a\\\"\"]}]}\n"},
		"JSON without a list":   {rule, "{\"version\": 1}", "# by me\n{commands: [{id: new, decision: allow, run: [\"make \\\"a\\\"\"]}], \"version\": 1}"},
		"lines of Windows":      {rule, "version: 1\r\ncommands:\r\n  - {id: b, decision: ask, run: [b]}\r\n", "version: 1\r\ncommands:\r\n" + strings.ReplaceAll(added, "\n", "\r\n") + "  - {id: b, decision: ask, run: [b]}\r\n"},
		"an exception":          {exception("b", "b x"), "version: 1\ncommands:\n  - id: b # x\n    decision: ask\n    run: [b **]\n", "version: 1\ncommands:\n  - id: b # x\n    # by me\n    except: [\"b x\"]\n    decision: ask\n    run: [b **]\n"},
		"another exception":     {exception("b", "b x"), "version: 1\ncommands:\n  - {id: b, decision: ask, run: [b **], except: [b y]}\n", "version: 1\n# by me\ncommands:\n  - {id: b, decision: ask, run: [b **], except: [\"b x\", b y]}\n"},
		"exceptions over lines": {exception("b", "b x"), "version: 1\ncommands:\n  - id: b\n    except:\n      - b y # y\n    decision: ask\n    run: [b **]\n", "version: 1\ncommands:\n  - id: b\n    except:\n      # by me\n      - \"b x\"\n      - b y # y\n    decision: ask\n    run: [b **]\n"},
		"exception in braces":   {exception("b", "b x"), "version: 1\ncommands:\n  - {id: b, decision: ask, run: [b **]}\n", "version: 1\n# by me\ncommands:\n  - {except: [\"b x\"], id: b, decision: ask, run: [b **]}\n"},
		"a variable":            {variable, "version: 1\n", "version: 1\nenv:\n  # by me\n  allow: [\"FOO\"]\n"},
		"another variable":      {variable, "version: 1\nenv:\n  unknown: ask\n  allow: [A]\n", "version: 1\n# by me\nenv:\n  unknown: ask\n  allow: [\"FOO\", A]\n"},
		"variables in braces":   {variable, "version: 1\nenv: {unknown: ask}\n", "version: 1\n# by me\nenv: {allow: [\"FOO\"], unknown: ask}\n"},
		"variables, not named":  {variable, "version: 1\nenv:\n  unknown: ask\n", "version: 1\nenv:\n  unknown: ask\n  # by me\n  allow: [\"FOO\"]\n"},
	} {
		out, pieces, err := EditPolicy("p.yaml", []byte(c.src), []policy.Change{c.change}, "by me")
		if err != nil || string(out) != c.want {
			t.Errorf("%s: %v, got\n%s\nwant\n%s", name, err, out, c.want)
			continue
		}
		back, err := UndoPolicy("p.yaml", out, []policy.Change{c.change}, pieces)
		if err != nil || string(back) != c.src {
			t.Errorf("%s: undone: %v, got\n%s", name, err, back)
		}
	}
}

func TestAnEditThatCannotBeMadeIsRefused(t *testing.T) {
	t.Parallel()
	rule := newRule("new", "make")
	for name, c := range map[string]struct {
		change policy.Change
		src    string
	}{
		"an empty file":       {rule, ""},
		"no policy":           {rule, "comands: []\n"},
		"anchors":             {rule, "version: 1\ncommands: &a\n  - {id: b, decision: ask, run: [b]}\n"},
		"the id is used":      {newRule("b", "x"), "version: 1\ncommands:\n  - {id: b, decision: ask, run: [b]}\n"},
		"no such rule":        {exception("c", "x"), "version: 1\ncommands:\n  - {id: b, decision: ask, run: [b]}\n"},
		"a built-in rule":     {policy.Change{Section: "builtin.disable", Texts: []string{"builtin:secrets"}}, "version: 1\n"},
		"a default":           {policy.Change{Section: "defaults.net"}, "version: 1\n"},
		"an end of the file":  {rule, "version: 1\n...\n"},
		"a word for the list": {rule, "version: 1\ncommands: null\n"},
	} {
		if out, _, err := EditPolicy("p.yaml", []byte(c.src), []policy.Change{c.change}, "by me"); err == nil {
			t.Errorf("%s is edited:\n%s", name, out)
		}
	}
}

func TestWhatWasChangedSinceIsNotUndone(t *testing.T) {
	t.Parallel()
	changes := []policy.Change{newRule("new", "make")}
	out, pieces, err := EditPolicy("p.yaml", []byte("version: 1\n"), changes, "by me")
	if err != nil {
		t.Fatal(err)
	}
	for _, now := range []string{
		strings.Replace(string(out), "decision: allow", "decision: deny", 1),
		string(out) + "  - {id: b, decision: ask, run: [b]}\n",
		string(out) + "# " + pieces[0].Text,
	} {
		if back, err := UndoPolicy("p.yaml", []byte(now), changes, pieces); err == nil && !strings.HasSuffix(now, pieces[0].Text) {
			t.Errorf("undone:\n%s\nis\n%s", now, back)
		}
	}
	elsewhere := "# top\n" + string(out)
	if back, err := UndoPolicy("p.yaml", []byte(elsewhere), changes, pieces); err != nil || string(back) != "# top\nversion: 1\n" {
		t.Errorf("%v: %s", err, back)
	}
}

// An edit never changes the meaning of another rule, and is undone to the byte.
func FuzzAnEditAddsWhatItSaysAndNothingElse(f *testing.F) {
	for _, src := range []string{
		string(careful), "version: 1\n", "version: 1\ncommands: []\npaths:\n- {id: a, decision: deny, match: [/x]}\n",
		"version: 1\r\ncommands: # c\r\n  - id: b\r\n    decision: ask\r\n    run: [b **]\r\n    except: [b c]\r\nenv: {allow: [A]}\r\n",
		"{\"version\": 1, \"commands\": [{\"id\": \"b\", \"decision\": \"ask\", \"run\": [\"b **\"]}]}", "version: 1\nname: |\n  commands:\n    - x\ncommands:\n\n\n  - decision: ask\n    id: b\n    run:\n      - b\n",
	} {
		f.Add(src, "make -j 4", "b")
	}
	f.Fuzz(func(t *testing.T, src, run, id string) {
		changes := []policy.Change{newRule("new-rule", run), {Section: "env.allow", Texts: []string{run}}, exception(id, run)}
		for _, c := range changes {
			out, pieces, err := EditPolicy("p.yaml", []byte(src), []policy.Change{c}, "approved by ada")
			if err != nil {
				continue
			}
			before := must.Get(parsePolicy("p.yaml", []byte(src), policy.Ask, caseAuto))(t)
			after, err := parsePolicy("p.yaml", out, policy.Ask, caseAuto)
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			if !sameMeaning(before.file.With(c), after.file) {
				t.Fatalf("%q became %q", src, out)
			}
			if back, err := UndoPolicy("p.yaml", out, []policy.Change{c}, pieces); err == nil && string(back) != src {
				t.Fatalf("%q was undone to %q", src, back)
			}
		}
	})
}
