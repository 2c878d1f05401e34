package main

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// FuzzQuoted: a real shell reads the words as they were.
func FuzzQuoted(f *testing.F) {
	for _, seed := range []string{"ls\n-la", "it's\n$HOME\n`id`", "a=b\n\n*", "~\n!x\n{a,b}", "\\\n\"\n#\n=x", "if", "é\t"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if strings.ContainsRune(text, 0) {
			t.Skip("no word holds a NUL")
		}
		words := strings.Split(text, "\n")
		out, err := exec.Command("bash", "--norc", "-c", `printf '%s\0' `+quoted(words)).Output()
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00"); !slices.Equal(got, words) {
			t.Errorf("%q was read as %q", words, got)
		}
	})
}
