package bash

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/sandbox"
)

// What a script writes to /tmp is gone with the call, unless it is the machine's
// own /tmp.
func TestAPrivateTmpNeedsNoRule(t *testing.T) {
	t.Parallel()
	ws, _ := must.Workspace(t)
	shared, err := os.MkdirTemp("/tmp", "shared")
	if err != nil {
		t.Skipf("cannot write /tmp: %v", err)
	}
	t.Cleanup(func() { os.RemoveAll(shared) })
	free := filepath.Base(shared) + "-free"
	must.Do(t, os.Symlink("/etc", filepath.Join(ws, "to-etc")))
	rules := policy.File{Name: "p.yaml", Presets: []string{"shell-readonly", "shell-workspace"}, Defaults: policy.Defaults{Bash: policy.Ask, Read: policy.Ask, Write: policy.Ask}}
	rules.Paths = []policy.Rule{
		{ID: "here", Action: policy.Allow, Paths: []string{ws + "/**"}},
		{ID: "keys", Action: policy.Deny, Paths: []string{"**/*.key"}},
	}
	p := must.Get(policy.Compile(policy.Options{Workspace: ws, Home: "/home/none", Tmp: "/tmp"}, rules))(t)
	for _, c := range []struct {
		mode   sandbox.Mode
		script string
		want   policy.Action
	}{
		{sandbox.WorkspaceWrite, "echo x > /tmp/" + free, policy.Allow},
		{sandbox.ReadOnly, "echo x > /var/tmp/" + free + "/a; rm /var/tmp/" + free + "/a", policy.Allow},
		{sandbox.WorkspaceWrite, "mktemp -d", policy.Allow},
		{sandbox.WorkspaceWrite, "mktemp -d /srv/x.XXX", policy.Ask},
		{sandbox.FullAccess, "echo x > /tmp/" + free, policy.Ask},
		{sandbox.FullAccess, "mktemp", policy.Ask},
		{sandbox.WorkspaceWrite, "echo x > " + shared + "/a", policy.Ask},
		{sandbox.WorkspaceWrite, "echo x > /tmp/../srv/" + free, policy.Ask},
		{sandbox.WorkspaceWrite, "echo x > /tmp/" + free + "/../../srv/a", policy.Ask},
		{sandbox.WorkspaceWrite, "echo x > to-etc/../tmp/" + free, policy.Ask},
		{sandbox.WorkspaceWrite, "echo x > /tmp/" + free + ".key", policy.Deny},
		{sandbox.WorkspaceWrite, "cp /etc/passwd /tmp/" + free, policy.Ask},
		{sandbox.WorkspaceWrite, "ln -s /media/" + free + " /tmp/" + free + "; cat /tmp/" + free + "/x", policy.Ask},
	} {
		o := Options{Workspace: ws, Profile: sandbox.Profile{Mode: c.mode, Workspace: ws}}
		inv := must.Get(New(o).Build(json.RawMessage(fmt.Sprintf(`{"command":%q}`, c.script))))(t)
		if d := p.Decide(inv.Effects()); d.Action != c.want {
			t.Errorf("%v: %s: %v by %s: %s", c.mode, c.script, d.Action, d.Rule, d.Reason)
		}
	}
}
