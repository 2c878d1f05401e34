package main

import "testing"

func TestWordsOfACommandLineBecomeOneCommand(t *testing.T) {
	t.Parallel()
	for want, words := range map[string][]string{
		"ls; id":              {"ls; id"},
		"echo 'a; b' ''":      {"echo", "a; b", ""},
		`echo 'it'\''s' -n`:   {"echo", "it's", "-n"},
		"P='^x' make":         {"P=^x", "make"},
		"git commit -m 'x y'": {"git", "commit", "-m", "x y"},
	} {
		if got := operand(words); len(got) != 1 || got[0] != want {
			t.Errorf("%q: got %q, want %q", words, got, want)
		}
	}
}
