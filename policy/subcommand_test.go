package policy

import (
	"strings"
	"testing"
)

func TestDenialsHoldForEverySpellingOfASubcommand(t *testing.T) {
	t.Parallel()
	for pattern, commands := range cases(t, "denied.txt") {
		p := rules(t, Defaults{Bash: Allow}, Rule{ID: "no", Run: []string{pattern}})
		if strings.HasPrefix(pattern, "docker rmi") {
			p = rules(t, Defaults{Bash: Allow}, Rule{ID: "no", Run: []string{pattern, "podman rmi **"}})
		}
		for _, command := range strings.Split(commands, " | ") {
			if d := p.Decide([]Effect{run(command)}); d.Action != Deny {
				t.Errorf("%q does not deny %q: %v by %s", pattern, command, d.Action, d.Rule)
			}
		}
	}
}

func TestDenialsOfASubcommandLeaveOthersAlone(t *testing.T) {
	t.Parallel()
	for pattern, commands := range cases(t, "not-denied.txt") {
		p := rules(t, Defaults{Bash: Allow}, Rule{ID: "no", Run: []string{pattern}})
		for _, command := range strings.Split(commands, " | ") {
			if d := p.Decide([]Effect{run(command)}); d.Action == Deny {
				t.Errorf("%q denies %q", pattern, command)
			}
		}
	}
}

// A name that means the same is no name that was allowed.
func TestAllowingRulesKeepToTheirSpelling(t *testing.T) {
	t.Parallel()
	p := rules(t, asking(), Rule{ID: "yes", Action: Allow, Run: []string{"npm run build", "npx prisma generate", "pip install x", "docker rmi x"}})
	decidesAll(t, p, Ask, []string{"npm rum build", "npx prisma@latest generate", "npm exec prisma generate", "pip3 install x", "docker image rm x", "npm --tag next run build"}...)
}

func TestFlagsOfGoProgramsHaveOneDashOrTwo(t *testing.T) {
	t.Parallel()
	p := rules(t, asking(), Rule{
		ID: "build", Action: Allow, Run: []string{"go build **", "terraform plan **"}, ForbidFlags: []string{"-mod*", "-destroy"}, PermitFlags: []string{"-ldflags*"},
	})
	decides(t, p, map[string]Action{
		"go build ./...":            Allow,
		"go build -mod=mod ./...":   Ask,
		"go build --mod=mod ./...":  Ask,
		"go build --mod mod ./...":  Ask,
		"go build -ldflags=-s .":    Allow,
		"go build --ldflags=-s .":   Allow,
		"terraform plan --destroy":  Ask,
		"terraform plan -no-color":  Allow,
		"go build --toolexec=./x .": Ask,
	})
}
