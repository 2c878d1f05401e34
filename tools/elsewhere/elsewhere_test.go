package elsewhere_test

import (
	"encoding/json"
	"testing"

	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/elsewhere"
)

func TestAHostIsJudgedInAnySpelling(t *testing.T) {
	t.Parallel()
	p := must.Get(policy.Compile(policy.Options{Workspace: "/w"}, policy.File{
		Defaults: policy.Defaults{Net: policy.Allow, Unanalysable: policy.Ask},
		Net:      []policy.Rule{{ID: "no", Action: policy.Deny, Hosts: []string{"example.com", "*.old.example", "127.0.0.1", "::1"}}},
	}))(t)
	tool := elsewhere.New(func() *tools.Registry { return nil })
	for host, want := range map[string]policy.Action{
		"example.com": policy.Deny, "EXAMPLE.com": policy.Deny, "example.com.": policy.Deny, "A.Old.Example.": policy.Deny,
		"::1": policy.Deny, "[::1]": policy.Deny, "0:0:0:0:0:0:0:1": policy.Deny, "::ffff:127.0.0.1": policy.Deny,
		"other.example": policy.Allow, "my_service": policy.Allow, "xn--bcher-kva.example": policy.Allow,
		// Programs read these in several ways.
		"0x7f.1": policy.Ask, "2130706433": policy.Ask, "127.1": policy.Ask, "example.com:80": policy.Ask, "u@example.com": policy.Ask,
		"b\u00fccher.example": policy.Ask, "ex\u00adample.com": policy.Ask, "example\u3002com": policy.Ask, "": policy.Ask,
	} {
		args := must.Get(json.Marshal(map[string]any{"program": "claude", "tool": "WebFetch", "cwd": "/w", "hosts": []string{host}}))(t)
		inv := must.Get(tool.Build(args))(t)
		if d := p.Decide(inv.Effects()); d.Action != want {
			t.Errorf("%q: %v by %s (%s), want %v", host, d.Action, d.Rule, d.Reason, want)
		}
	}
}
