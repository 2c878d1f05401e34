package policy

import (
	"path"
	"strings"
	"testing"
)

// judged decides the paths of a command as they stand in it, from the workspace.
func judged(p *Policy, command string) Action {
	var effects []Effect
	for _, o := range describe(words(command)).Operands {
		e := Effect{Kind: o.Kind, Tree: o.Tree, Part: o.Part, Unknown: o.Word.Dynamic}
		if !e.Unknown {
			e.Path = path.Join("/w", o.Word.Text)
			e.Canonical = e.Path
		}
		effects = append(effects, e)
	}
	if effects == nil {
		return Allow
	}
	return p.Decide(effects).Action
}

func TestWhatPassesByADeniedFileIsNotAsked(t *testing.T) {
	t.Parallel()
	d := asking()
	d.UnknownRead = Allow
	p := compile(t, File{Name: "p.yaml", Defaults: d, Paths: []Rule{
		{ID: "ws", Action: Allow, Paths: []string{"${workspace}/**"}},
		{ID: "dotenv", Paths: []string{"${workspace}/**/.env"}},
		{ID: "pem", Paths: []string{"${workspace}/**/*.pem"}},
	}})
	for command, want := range cases(t, "parts.txt") {
		if got := judged(p, command); got.String() != want {
			t.Errorf("%s: %v, want %s", command, got, want)
		}
	}
}

func TestADeniedFolderIsNotListedOrFormatted(t *testing.T) {
	t.Parallel()
	p := compile(t, File{Name: "p.yaml", Defaults: asking(), Paths: []Rule{
		{ID: "ws", Action: Allow, Paths: []string{"${workspace}/**"}},
		{ID: "secrets", Paths: []string{"${workspace}/secrets/**"}},
	}})
	for command, want := range map[string]Action{
		"find . -name x":              Ask,
		"find src -name x":            Allow,
		"ls -R .":                     Ask,
		"ls secrets":                  Deny,
		"du -sh .":                    Ask,
		"grep -r --include=*.go x .":  Ask,
		"gofmt -l .":                  Ask,
		"gofmt -w .":                  Deny,
		"gofmt -w src":                Allow,
		"gofmt -w .git/hooks/x.go":    Deny, // named itself, by a built-in rule
		"gofmt -w .git/hooks/install": Deny,
	} {
		if got := judged(p, command); got != want {
			t.Errorf("%s: %v, want %v", command, got, want)
		}
	}
}

func TestTarThatPacksReadsWhatItPacks(t *testing.T) {
	t.Parallel()
	for command, want := range cases(t, "tar.txt") {
		if got := strings.Join(operands(command), "; "); got != want {
			t.Errorf("%s: %q, want %q", command, got, want)
		}
	}
}
