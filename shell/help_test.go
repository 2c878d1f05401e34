package shell

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/policy"
)

type scriptCase struct{ section, text string }

// cases reads sections that begin with "== NAME"; comments begin with "# ".
func cases(t testing.TB, file string) (list []scriptCase) {
	t.Helper()
	text := must.Get(os.ReadFile("testdata/" + file))(t)
	section := ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		if name, ok := strings.CutPrefix(line, "== "); ok {
			section = name
		} else if line != "" && !strings.HasPrefix(line, "# ") {
			list = append(list, scriptCase{section, strings.ReplaceAll(line, "⏎", "\n")})
		}
	}
	return list
}

func environment() map[string]string {
	return map[string]string{"HOME": "/home/u", "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "USER": "u", "TERM": "dumb"}
}

func newAnalyser(ws string) *Analyser {
	return New(Options{Workspace: ws, Env: environment()})
}

func analysed(t testing.TB, ws, script string) []policy.Effect {
	t.Helper()
	return newAnalyser(ws).Effects(script, ws)
}

// shown renders effects in order: "run ls …", "r /path", "w+ /tree", "net host", "env NAME",
// "opaque". Possible effects are left out.
func shown(effects []policy.Effect, ws, out string) string {
	var lines []string
	for _, e := range effects {
		if !e.Possible {
			lines = append(lines, line(e, ws, out))
		}
	}
	slices.Sort(lines)
	return strings.Join(slices.Compact(lines), "; ")
}

func line(e policy.Effect, ws, out string) string {
	s := ""
	switch e.Kind {
	case policy.Exec:
		s = e.String()
	case policy.Read, policy.Write:
		s = e.Kind.String()[:1]
		if e.Tree {
			s += "+"
		}
		s += " " + e.Canonical
		if e.Unknown {
			s += "?"
		}
	case policy.Net:
		s = "net " + e.Host
	case policy.Env:
		s = "env " + e.Name
	default:
		s = "opaque"
	}
	return strings.NewReplacer(ws+"/", "", ws, ".", out, "OUT").Replace(s)
}
