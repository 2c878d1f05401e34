package shell

import (
	"math/rand/v2"
	"os/exec"
	"strings"
	"testing"

	"github.com/toold/toold/policy"
)

// TestBracesAreReadAsBashReadsThem compares random words that are not Opaque.
func TestBracesAreReadAsBashReadsThem(t *testing.T) {
	t.Parallel()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("there is no bash to compare with")
	}
	const count = 3000
	r := rand.New(rand.NewPCG(rand.Uint64(), 1))
	pieces := []string{"{", "{", "{", "}", "}", "}", ",", ",", ",", "a", "b", "..", "1", "3", "'q'", `"r"`, `\,`, `\{`, `\}`, "$x", "${x}", "{}", "a..c", `"{"`, "'}'", "-", ".", "$(echo s)", "=", "x="}
	words := make([]string, count)
	for i := range words {
		for range 1 + r.IntN(9) {
			words[i] += pieces[r.IntN(len(pieces))]
		}
	}
	words = append(words, "{x}y,b}", "a{x},.env}", "{a,b}{c,d}", "{{a},b}", "{a,{b,c}}d", "{}", "{},a}", "{a,b", "a}", "{1..3}", "{3..1}", "{a..c}x", "{1..10..4}", "{,}", "{,a}", "x{,,}y", "${x}{a,b}", "{a..},b}", "{..},b}")
	var script strings.Builder
	script.WriteString("x=v\n")
	for _, word := range words {
		// A word that bash cannot read must not take the others with it.
		script.WriteString("eval 'printf \"%s\\0\" " + strings.ReplaceAll(word, "'", `'\''`) + "'; printf '\\n\\0'\n")
	}
	cmd := exec.CommandContext(t.Context(), bash, "--noprofile", "--norc")
	cmd.Stdin = strings.NewReader(script.String())
	cmd.Dir = t.TempDir()
	out, _ := cmd.Output()
	results := strings.Split(string(out), "\n\x00")
	if len(results) != len(words)+1 {
		t.Fatalf("bash printed %d results for %d words", len(results), len(words))
	}
	a := New(Options{Workspace: "/", Env: map[string]string{"PATH": "/bin"}})
	compared := 0
	for i, word := range words {
		effects := a.Effects("x=v; printf '%s' "+word, "/")
		argv, known := plainArgv(effects, "printf")
		if !known {
			continue
		}
		compared++
		want := strings.TrimSuffix(results[i], "\x00")
		if got := strings.Join(argv[2:], "\x00"); got != want {
			t.Errorf("%s: %q, in bash %q", word, got, want)
		}
	}
	t.Logf("%d of %d words compared", compared, len(words))
	if compared < count/3 {
		t.Errorf("only %d of %d words could be compared", compared, count)
	}
}

func plainArgv(effects []policy.Effect, program string) (argv []string, known bool) {
	for _, e := range effects {
		if e.Kind == policy.Opaque {
			return nil, false
		}
		if e.Kind != policy.Exec || e.Argv[0].Text != program {
			continue
		}
		for _, a := range e.Argv {
			if a.Dynamic {
				return nil, false
			}
			argv = append(argv, a.Text)
		}
	}
	return argv, len(argv) > 1
}
