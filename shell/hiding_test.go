package shell

import (
	"os"
	"strings"
	"testing"

	"github.com/toold/toold/policy"
)

// TestNothingHidesInWhatLooksHarmless plays scripts that hide a command, a path or
// a host, under a policy that allows the everyday commands with any words, and
// everything in the workspace.
func TestNothingHidesInWhatLooksHarmless(t *testing.T) {
	t.Parallel()
	ws, _ := workspace(t)
	a := newAnalyser(ws)
	ask := policy.Defaults{Bash: policy.Ask, Read: policy.Ask, Write: policy.Ask, Net: policy.Ask, UnknownRead: policy.Ask, UnknownWrite: policy.Ask, Unanalysable: policy.Ask}
	var everyday []string
	for name := range strings.FieldsSeq("git find tar sed awk gawk sort wc du dd tee install cp mv ln split csplit rsync ssh scp curl wget make rg fd jq xxd grep cat ls echo printf " +
		"test cut tail head diff less man zip unzip gcc node python3 go npm cargo date touch truncate shuf uniq base64 chmod rm patch iconv xargs env") {
		everyday = append(everyday, name+" **")
	}
	p, err := policy.Compile(policy.Options{Workspace: ws, Home: "/home/u"}, policy.File{
		Defaults: ask, Presets: []string{"shell-readonly", "shell-workspace"},
		Commands: []policy.Rule{{ID: "everyday", Action: policy.Allow, Run: everyday}},
		Paths:    []policy.Rule{{ID: "workspace", Action: policy.Allow, Paths: []string{"${workspace}/**"}}},
		Net:      []policy.Rule{{ID: "known", Action: policy.Allow, Hosts: []string{"a.test"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	hiding, err := os.ReadFile("testdata/hiding.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(hiding)) {
		script := strings.ReplaceAll(strings.TrimSuffix(line, "\n"), `\n`, "\n")
		if d := p.Decide(a.Effects(script, ws)); d.Action == policy.Allow {
			t.Errorf("%s: allowed by %s", script, d.Rule)
		}
	}
}
