package display

import (
	"os/exec"
	"testing"

	"github.com/toold/toold/internal/must"
)

func TestACommandThatIsCopiedNamesExactlyTheOperand(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"call_1":             "call_1",
		"/a/b c":             "'/a/b c'",
		"":                   "''",
		"x; touch y":         "'x; touch y'",
		"$(id)`id`'":         `'$(id)` + "`id`" + `'\'''`,
		"--all":              "-- --all",
		"~/x":                "'~/x'",
		"a=b":                "'a=b'",
		"a\nb'\\":            `$'a\012b\'\\'`,
		"\u202ea\u31649\xff": `$'\342\200\256a\343\205\2449\377'`,
	} {
		got := Operand(in)
		if got != want {
			t.Errorf("Operand(%q) = %s, want %s", in, got, want)
		}
		if Line(got) != got {
			t.Errorf("nobody sees all of %q", got)
		}
		read := must.Get(exec.Command("bash", "--norc", "-c", `show() { [ "$1" != -- ] || shift; printf %s "$#:$1"; }; show `+got).Output())(t)
		if string(read) != "1:"+in {
			t.Errorf("bash reads %s as %q", got, read)
		}
	}
}
