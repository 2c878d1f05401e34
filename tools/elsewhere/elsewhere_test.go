package elsewhere_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/bash"
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

// A person decides on all arguments of a call, not only on those that the rules are about.
func TestAPersonSeesAllArguments(t *testing.T) {
	t.Parallel()
	registry := must.Get(tools.NewRegistry(bash.New(bash.Options{Workspace: t.TempDir()})))(t)
	tool := elsewhere.New(func() *tools.Registry { return registry })
	long := strings.Repeat("fine ", 1000)
	for _, tc := range []struct {
		arguments map[string]any
		want      []string
		fed       string
	}{
		{map[string]any{"tool": "mcp__x__send", "other": true, "input": json.RawMessage(`{"text":"` + long + `","to":"far"}`)}, []string{`"to":"far"`}, `{"text":"` + long + `","to":"far"}`},
		{map[string]any{"tool": "Bash", "command": "true", "input": json.RawMessage(`{"command":"true"}`)}, nil, ""},
		{
			map[string]any{"tool": "Bash", "command": "true", "input": json.RawMessage(`{"cmd":"true","description":"d","timeout":1,"shell":"/tmp/x","env":{"A":"b"}}`)},
			[]string{"true\nwith ", `"shell":"/tmp/x"`, `"env":{"A":"b"}`, `"description":"d"`, `"timeout":1`},
			`{"env":{"A":"b"},"shell":"/tmp/x"}`,
		},
	} {
		tc.arguments["program"], tc.arguments["cwd"] = "claude", "/"
		inv := must.Get(tool.Build(must.Get(json.Marshal(tc.arguments))(t)))(t)
		text := inv.Text()
		for _, want := range tc.want {
			if !strings.Contains(text, want) {
				t.Errorf("%s is shown without %s", text, want)
			}
		}
		if len(tc.want) == 0 && strings.Contains(text, "with ") {
			t.Errorf("%s is shown", text)
		}
		if fed := inv.(interface{ Fed() string }).Fed(); fed != tc.fed {
			t.Errorf("fed %s, want %s", fed, tc.fed)
		}
	}
}
