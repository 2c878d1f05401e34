package policy

import (
	"strings"
	"testing"
)

// Who wrote "go build **" learns from the question which flag it does not cover.
func TestAQuestionNamesTheFlagThatARuleDoesNotCover(t *testing.T) {
	t.Parallel()
	p := rules(t, asking(),
		Rule{ID: "checks", Action: Allow, Run: []string{"go {build,test} **", "npx eslint **"}, PermitFlags: []string{"-o"}},
		Rule{ID: "wide", Action: Allow, Run: []string{"go **"}, ForbidFlags: []string{"-v"}},
	)
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
