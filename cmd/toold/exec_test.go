package main

import (
	"math/rand/v2"
	"os/exec"
	"strings"
	"testing"

	"github.com/toold/toold/internal/describe"
	"github.com/toold/toold/internal/must"
)

func TestAShellReadsTheWordsAsTheyWere(t *testing.T) {
	t.Parallel()
	words := []string{"A=1", "if", "", "it's", "$HOME", "`id`", "~", "a\nb", "é\xff", "*", "{a,b}", "-n", "#", `\`}
	const signs = "aZ0_./:,@%+-=' \t\n\"\\$`!#&*()[]{}|;<>?~^\x01é\xff"
	for range 2000 {
		word := make([]byte, rand.IntN(8))
		for i := range word {
			word[i] = signs[rand.IntN(len(signs))]
		}
		words = append(words, string(word))
	}
	out := must.Get(exec.Command("bash", "--norc", "-c", `printf '%s\0' `+describe.Quote(words, true)).Output())(t)
	must.Match(t, words, strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00"))
}
