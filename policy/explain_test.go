package policy

import (
	"strings"
	"testing"
)

// What denies one file of a folder asks for a search through it: the question is no
// claim about the folder.
func TestAQuestionAboutAFolderNamesWhatIsDeniedInIt(t *testing.T) {
	t.Parallel()
	p := compile(t, File{Name: "p.yaml", Defaults: asking(), Paths: []Rule{
		{ID: "here", Action: Allow, Paths: []string{"/w/**"}},
		{ID: "state", Action: Deny, Paths: []string{"/w/**/*.tfstate"}, Reason: "it holds credentials"},
	}})
	d := p.Decide([]Effect{tree(read("/w"))})
	want := `It would read /w and all in it, and rule "state" denies part of that: it holds credentials. Search a narrower directory, or files of some names, to avoid the question. A person decides.`
	if d.Action != Ask || d.Reason != want {
		t.Errorf("%v: %s", d.Action, d.Reason)
	}
}

// Who wrote "go build **" learns from the question which flag it does not cover.
func TestAQuestionNamesTheFlagThatARuleDoesNotCover(t *testing.T) {
	t.Parallel()
	p := rules(t, asking(),
		Rule{ID: "checks", Action: Allow, Run: []string{"go {build,test} **", "npx eslint **"}, PermitFlags: []string{"-o"}},
		Rule{ID: "wide", Action: Allow, Run: []string{"go **"}, ForbidFlags: []string{"-v"}},
	)
	if got := run("go test …").String(); got != "run go test …" {
		t.Errorf("got %q", got)
	}
	for command, want := range map[string]string{
		"go build -ldflags=-s -o x .":                          `"checks" would, but for -ldflags=-s, which its permit_flags`,
		"go test -v -coverprofile c.out .":                     `"checks" would, but for -coverprofile, which`,
		"npx eslint --fix .":                                   `"checks" would, but for --fix, which`,
		"go vet -vettool=./x .":                                `"wide" would, but for -vettool=./x, which`,
		"go build -exec a -C b -w -u -c .":                     `but for -exec and -C and -w and -u and others, which`,
		"go test …":                                            `"checks" would, but for …, which`,
		"npm run x":                                            ``,
		"go vet -v -vettool=./x .":                             ``,
		"go build " + strings.Repeat("x", maxTried) + " -exec": ``,
	} {
		d := p.Decide([]Effect{run(command)})
		if d.Action != Ask || want == "" && strings.Contains(d.Reason, "but for") || !strings.Contains(d.Reason, want) {
			t.Errorf("%s: %v: %s", command, d.Action, d.Reason)
		}
	}
}
