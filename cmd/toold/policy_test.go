package main

import (
	"testing"

	"github.com/toold/toold/message"
)

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
	e := explanation{Recorded: &message.Decision{Action: "deny", Reason: "two\nlines\x1b[2J"}}
	e.Reason = "a\nb"
	for _, r := range e.String() {
		if r == 0x1b {
			t.Errorf("an escape sequence reaches the terminal: %q", e.String())
		}
	}
}
