package texts

import (
	"os/exec"
	"strings"
	"testing"
)

// What is said to be printed is what the programs of this machine print.
func TestFiltersPrintWhatProgramsDo(t *testing.T) {
	t.Parallel()
	const input = "git push x/y\nA-b (c) +d $e & f\n\ntab\there\n"
	for _, command := range []string{
		"rev", "tac", "tr a-z A-Z", "tr a-c x", "tr -d a-z", "tr abc-e v-z", "tr [:upper:] [:lower:]", `tr \n ,`,
		"sed s/a/b/", "sed s/a/b/g", "sed s/[a-c]/<&>/g", `sed s/\(.\)\(.\)/\2\1/g`, `sed -E s/(.)(.)/\2\1/`, "sed s/+/plus/", "sed -E s/[(+]+/p/g", `sed s/\//-/`, "sed s|/|-|;s/^/>/", "sed -e s/$/!/ -e s/!/?/",
		`sed s/&/\&\&/`, "sed s/$e/x/", `sed s/\$e/x/`, `sed s/.*/a\nb/`, "sed s/T/x/I", "sed s/x*/-/", "sed s/x*/-/g", `sed s/a\|b/x/g`, "sed s/a|b/x/g", `sed s/\w/u/g`, "sed s/[^a-z]//g", "sed s/[]a]/x/", `sed s/a\{1\}/x/`, "sed s/a{1}/x/",
	} {
		words := strings.Split(command, " ")
		got, ok := Printed(words[0], words[1:], input)
		cmd := exec.Command(words[0], words[1:]...)
		cmd.Stdin = strings.NewReader(input)
		want, err := cmd.Output()
		if ok && err == nil && got != string(want) {
			t.Errorf("%s: got %q, want %q", command, got, want)
		}
		if !ok {
			t.Errorf("%s is not followed", command)
		}
	}
	for _, command := range []string{"sed s/a/b/e", "sed s/a/b/w", "sed p", "sed -n s/a/b/p", `sed s/a/\U&/`, "sed -i s/a/b/", "sed s/a", "tr a", "tr -s a b", "tr", "cat", "rev x", `sed s/\(a\)\1/b/`} {
		name, args, _ := strings.Cut(command, " ")
		if got, ok := Printed(name, strings.Fields(args), input); ok {
			t.Errorf("%s: %q", command, got)
		}
	}
}
