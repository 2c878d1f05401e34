package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toold/toold/message"
	"github.com/toold/toold/policy"
)

func TestAProposalIsNoWiderThanWhatWasApproved(t *testing.T) {
	t.Parallel()
	var list []*proposal
	for _, words := range [][]string{
		{"tool", "build", "a", "-q"},
		{"tool", "build", "b", "-q"},
		{"tool", "build", "c", "--force"}, // another flag
		{"tool", "clean", "a", "-q"},      // another subcommand
		{"tool", "build", "a"},            // fewer words
	} {
		list = merge(list, &proposal{words: words, Run: []string{strings.Join(words, " ")}})
	}
	list = merge(list, &proposal{Ops: []string{"read"}, Match: []string{"/srv/a"}})
	list = merge(list, &proposal{Ops: []string{"write"}, Match: []string{"/srv/a"}})
	list = merge(list, &proposal{Ops: []string{"read"}, Match: []string{"/srv/a"}})
	var got []string
	for _, p := range list {
		got = append(got, strings.Join(append(append(p.Run, p.Ops...), p.Match...), " "))
	}
	want := []string{"tool build * -q", "tool build c --force", "tool clean a -q", "tool build a", "read /srv/a", "write /srv/a"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("proposals (-want +got):\n%s", diff)
	}
}

func TestNothingIsProposedForAPartOfACall(t *testing.T) {
	t.Parallel()
	p, err := policy.Compile(policy.Options{Workspace: "/w", Home: "/h", Tmp: "/tmp"}, policy.File{Defaults: policy.Defaults{Bash: policy.Ask, Unanalysable: policy.Ask}})
	if err != nil {
		t.Fatal(err)
	}
	known := policy.Effect{Kind: policy.Exec, Argv: literal([]string{"tool", "x"})}
	if got := asking(p, []policy.Effect{known, {Why: "unknown"}}); got != nil {
		t.Errorf("a part of what cannot be analysed is proposed: %+v", got[0])
	}
	if got := asking(p, []policy.Effect{known}); len(got) != 1 {
		t.Errorf("got %+v", got)
	}
}

func TestSamplesNameEachAlternativeOfAPattern(t *testing.T) {
	t.Parallel()
	for pattern, want := range map[string][]string{
		"go {test,vet} **": {"go test", "go vet"},
		"cat *":            {"cat sample"},
		"a{b,c}d":          {"abd", "acd"},
		"{a,b}-{c,d}":      {"a-c", "a-d", "b-c", "b-d"},
		"x {a,{b,c}}":      nil,
		"say 'a b'":        nil,
		"**":               nil,
	} {
		if diff := cmp.Diff(want, samples(pattern)); diff != "" {
			t.Errorf("samples of %q (-want +got):\n%s", pattern, diff)
		}
	}
}

func TestAgesAreDaysOrDurations(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{"30d": 720 * time.Hour, "12h": 12 * time.Hour, "0d": 0} {
		if got, err := age(text); err != nil || got != want {
			t.Errorf("%s: got %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "d", "-1d", "-5h", "9999999999d", "soon"} {
		if got, err := age(text); err == nil {
			t.Errorf("%q is read as %v", text, got)
		}
	}
}

func TestWordsOfACommandLineBecomeOneCommand(t *testing.T) {
	t.Parallel()
	for want, words := range map[string][]string{
		"ls; id":              {"ls; id"},
		"echo 'a; b' ''":      {"echo", "a; b", ""},
		`echo 'it'\''s' -n`:   {"echo", "it's", "-n"},
		"git commit -m 'x y'": {"git", "commit", "-m", "x y"},
	} {
		if got := operand(words); len(got) != 1 || got[0] != want {
			t.Errorf("%q: got %q, want %q", words, got, want)
		}
	}
}

func TestWhatAnAgentWroteIsShownOnOneLine(t *testing.T) {
	t.Parallel()
	e := explanation{Recorded: &message.Decision{Action: "deny", Reason: "two\nlines\x1b[2J"}, Decision: policy.Decision{Reason: "a\nb"}}
	for _, r := range e.String() {
		if r == 0x1b {
			t.Errorf("an escape sequence reaches the terminal: %q", e.String())
		}
	}
}

func FuzzReadCase(f *testing.F) {
	f.Add([]byte(`{"command": "ls", "expect": "allow"}`))
	f.Add([]byte(`{"tool": "bash", "arguments": {"command": "x"}, "must_not": ["allow"], "cwd": "/"}`))
	f.Add([]byte(`{"tool": "bash", "arguments": null, "expect": "ask", "cwd": "/"}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		c, err := readCase(line)
		if err == nil && (c.Tool == "" || len(c.Arguments) == 0 || c.Expect == "" && len(c.MustNot) == 0) {
			t.Errorf("%q is read as a case without meaning: %+v", line, c)
		}
	})
}
