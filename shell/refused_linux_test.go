package shell_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/policy"
)

// TestWhatBashRefusesIsNotAsked plays testdata/refused.txt.
func TestWhatBashRefusesIsNotAsked(t *testing.T) {
	t.Parallel()
	m := newMachine(t, provedFiles())
	workspace := m.base + "/w"
	careful := starterRules(t, "careful", workspace).Within(policy.Confinement{View: true, Judged: true, Offline: true, Masked: true})
	text := must.Get(os.ReadFile("testdata/refused.txt"))(t)
	section := ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		if heading, ok := strings.CutPrefix(line, "== "); ok {
			section = heading
		}
		if line == "" || line[0] == '#' || line[0] == '=' {
			continue
		}
		script := strings.ReplaceAll(line, `\n`, "\n")
		effects := must.Get(predict(script, workspace, m.env))(t)
		must.Do(t, m.watch.reset())
		o := must.Get(m.run(script, true))(t)
		isEvil := func(argv []string) bool { return filepath.Base(argv[0]) == "evil" }
		ran := slices.ContainsFunc(o.ran, isEvil)
		if refused := strings.HasPrefix(section, "bash refuses"); ran == refused {
			t.Errorf("%s: it is not so, bash has run %q, by\n%s", section, o.ran, script)
		}
		foreseen := slices.ContainsFunc(effects, func(e policy.Effect) bool {
			return e.Kind == policy.Exec && isEvil([]string{e.Argv[0].Text}) || e.Kind == policy.Opaque && !strings.HasPrefix(e.Why, "bash refuses")
		})
		allowed := careful.Decide(effects).Action == policy.Allow
		switch {
		case ran && !foreseen:
			t.Errorf("%s: bash has run evil, and that is not predicted: %v, by\n%s", section, effects, script)
		case strings.HasSuffix(section, "runs") && !allowed:
			t.Errorf("%s: the decision is %v, by\n%s", section, careful.Decide(effects), script)
		case strings.Contains(section, ": asked") && allowed:
			t.Errorf("%s: it is allowed: %v, by\n%s", section, effects, script)
		}
	}
}
