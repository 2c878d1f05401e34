package main

import (
	"testing"
	"time"

	"github.com/toold/toold/message"
)

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
	e := explanation{Recorded: &message.Decision{Action: "deny", Reason: "two\nlines\x1b[2J"}}
	e.Reason = "a\nb"
	for _, r := range e.String() {
		if r == 0x1b {
			t.Errorf("an escape sequence reaches the terminal: %q", e.String())
		}
	}
}
