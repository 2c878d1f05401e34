package programs

import (
	"strings"
	"testing"
)

func FuzzSedScript(f *testing.F) {
	f.Add("s/a/b/g;1,5p")
	f.Add("/x/{p;q}")
	f.Fuzz(func(t *testing.T, script string) {
		if safeSedScript(Word{Text: script}) && strings.Trim(script, "ewrRWaicbtTvFz") != script && strings.HasPrefix(script, "e") {
			t.Errorf("%q is safe", script)
		}
	})
}
