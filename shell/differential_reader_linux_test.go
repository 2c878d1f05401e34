package shell_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"mvdan.cc/sh/v3/syntax"

	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/policy"
)

// TestBashReadsScriptsAsTheyAreAnalysed compares the commands of random scripts with those that
// bash prints of a function with the same body. Opaque scripts are skipped.
func TestBashReadsScriptsAsTheyAreAnalysed(t *testing.T) {
	t.Parallel()
	m := newMachine(t, fixture())
	g := readGrammar(t)
	seed, count := number(t, "TOOLD_SEED", 1), number(t, "TOOLD_SCRIPTS", 20000)
	compared := 0
	for n := uint64(1); n <= count; n += 200 {
		var list []string
		for i := range uint64(200) {
			script := g.script(seed, n+i)
			if _, ok := commandsOf("__f() {\n" + script + "\n}"); !ok {
				script = ":" // it may end the function
			}
			list = append(list, script)
		}
		bodies := must.Get(m.bodies(list))(t)
		for i, script := range list {
			if len(bodies) != len(list) || bodies[i] == "" {
				continue // bash refuses it
			}
			ours, ok := commandsOf("__f() {\n" + script + "\n}")
			theirs, printed := commandsOf(bodies[i])
			ansi := strings.Contains(script, "$'") // bash prints what they stand for
			if !ok || !printed || ansi || opaque(m.base+"/w", script) {
				continue
			}
			if compared++; !slices.Equal(ours, theirs) {
				t.Errorf("script %d of TOOLD_SEED=%d is read differently:\n%s\nbash: %s\nwe see %q\nbash   %q", n+uint64(i), seed, script, bodies[i], ours, theirs)
			}
		}
	}
	t.Logf("TOOLD_SEED=%d: %d of %d scripts compared", seed, compared, count)
	if uint64(compared)*3 < count {
		t.Errorf("only %d of %d scripts could be compared", compared, count)
	}
}

func (m *machine) bodies(list []string) ([]string, error) {
	var text strings.Builder
	for _, script := range list {
		quoted := strings.ReplaceAll("__f() {\n"+script+"\n}", "'", `'\''`)
		fmt.Fprintf(&text, "unset -f __f; eval '%s'; declare -f __f; printf '\\0'\n", quoted)
	}
	if err := m.watch.reset(); err != nil {
		return nil, err
	}
	o, err := m.run(text.String(), true)
	return strings.Split(strings.TrimSuffix(o.said, "\x00"), "\x00"), err
}

func opaque(dir, script string) bool {
	effects, err := predict(script, dir, nil)
	return err != nil || slices.ContainsFunc(effects, func(e policy.Effect) bool { return e.Kind == policy.Opaque })
}

func commandsOf(script string) (list []string, ok bool) {
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(script), "")
	if err != nil || len(file.Stmts) != 1 {
		return nil, false
	}
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Redirect: // bash writes numbers and |& out, and tabs not
			if n.N = nil; n.Op == syntax.Hdoc {
				n.Word = &syntax.Word{}
			}
			return n.Op != syntax.DplOut && n.Op != syntax.DplIn && n.Op != syntax.DashHdoc
		case *syntax.CoprocClause, *syntax.CStyleLoop: // bash writes what is missing there
			return false
		case *syntax.WordIter:
			if !n.InPos.IsValid() {
				list = append(list, n.Name.Value, `"`, "@")
				return false
			}
		case *syntax.CallExpr:
			list = append(list, "run")
		case *syntax.CaseItem:
			list = append(list, "case")
		case *syntax.Lit:
			list = append(list, n.Value)
		case *syntax.SglQuoted:
			list = append(list, "'"+n.Value)
		case *syntax.DblQuoted:
			list = append(list, `"`)
		}
		return true
	})
	return list, true
}
