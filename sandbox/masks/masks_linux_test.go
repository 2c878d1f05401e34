package masks_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/sandbox/masks"
	"github.com/toold/toold/sandbox/protect"
)

type project struct {
	t      *testing.T
	ws     string
	policy *policy.Policy
	*masks.Tracker
}

func newProject(t *testing.T, f policy.File, files ...string) project {
	t.Helper()
	ws := must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
	for _, name := range files {
		path := filepath.Join(ws, name)
		must.Do(t, os.MkdirAll(filepath.Dir(path), 0o700))
		must.Do(t, os.WriteFile(path, []byte("x\n"), 0o600))
	}
	p := must.Get(policy.Compile(policy.Options{Workspace: ws, Home: "/nowhere", Tmp: "/tmp"}, f))(t)
	tracker, watcher, err := masks.New(protect.Options{Roots: []string{ws}, Quarantine: filepath.Join(t.TempDir(), "q")}, p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(watcher.Close)
	return project{t, ws, p, tracker}
}

func (p project) masked(rules *policy.Policy, opened ...policy.Effect) []string {
	p.t.Helper()
	call := must.Get(p.Begin(p.t.Context(), rules, opened, false, func() {}))(p.t)
	defer call.End()
	list := []string{}
	if call.Masks() == nil {
		return list
	}
	for _, m := range call.Masks().Hidden {
		list = append(list, strings.TrimPrefix(m.Path, p.ws+"/"))
	}
	for _, m := range call.Masks().Fixed {
		list = append(list, "+"+strings.TrimPrefix(m.Path, p.ws+"/"))
	}
	slices.Sort(list)
	return list
}

func (p project) equal(got []string, want ...string) {
	p.t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		p.t.Error(d)
	}
}

func rule(id string, action policy.Action, ops []policy.Kind, match ...string) policy.Rule {
	return policy.Rule{ID: id, Action: action, Ops: ops, Paths: match}
}

func TestOnlyRulesMask(t *testing.T) {
	t.Parallel()
	p := newProject(t, policy.File{Defaults: policy.Defaults{Read: policy.Ask, Write: policy.Deny}}, "a", "b/c", "node_modules/x/id_rsa", "id_rsa")
	p.equal(p.masked(p.policy), "id_rsa")
}

func TestADirectoryIsOneMaskUnlessSomethingInItIsLeftOut(t *testing.T) {
	t.Parallel()
	secrets := rule("secrets", policy.Deny, nil, "${workspace}/*/secrets/**")
	secrets.Except = []string{"${workspace}/b/secrets/open/**"}
	p := newProject(t, policy.File{Paths: []policy.Rule{
		secrets, rule("asked", policy.Ask, nil, "${workspace}/asked/**"), rule("fixed", policy.Deny, []policy.Kind{policy.Write}, "${workspace}/fixed/**"),
	}}, "a/secrets/x", "a/secrets/y/z", "b/secrets/x", "b/secrets/y/z", "b/secrets/open/o", "asked/a/b", "asked/a/c", "asked/d", "fixed/x/y", "fixed/z")
	p.equal(p.masked(p.policy), "+fixed", "a/secrets", "asked", "b/secrets/x", "b/secrets/y")
	one := filepath.Join(p.ws, "asked/a/b")
	yes := policy.Effect{Kind: policy.Read, Path: one, Canonical: one}
	p.equal(p.masked(p.policy, yes), "+asked", "+fixed", "a/secrets", "asked/a/c", "asked/d", "b/secrets/x", "b/secrets/y")
	all := filepath.Join(p.ws, "asked")
	p.equal(p.masked(p.policy, policy.Effect{Kind: policy.Read, Path: all, Canonical: all, Tree: true}), "+asked", "+fixed", "a/secrets", "b/secrets/x", "b/secrets/y")
	p.equal(p.masked(p.policy, policy.Effect{Kind: policy.Read, Path: p.ws, Canonical: p.ws, Tree: true}), "+fixed", "a/secrets", "asked", "b/secrets/x", "b/secrets/y")
}

func TestRulesForAClientMaskForThatClientAlone(t *testing.T) {
	t.Parallel()
	p := newProject(t, policy.File{
		Paths:   []policy.Rule{rule("all", policy.Deny, nil, "**/*.key")},
		Clients: []policy.Client{{Name: "guest", File: policy.File{Name: "guests", Paths: []policy.Rule{rule("own", policy.Deny, nil, "**/*.txt")}}}},
	}, "a.key", "b.txt")
	p.equal(p.masked(p.policy.For("other", "")), "a.key")
	p.equal(p.masked(p.policy.For("guest", "")), "a.key", "b.txt")
	p.equal(p.masked(p.policy), "a.key")
}

func TestAYesLiftsOnlyTheRuleThatAsked(t *testing.T) {
	t.Parallel()
	read, write := []policy.Kind{policy.Read}, []policy.Kind{policy.Write}
	p := newProject(t, policy.File{Paths: []policy.Rule{
		rule("read", policy.Ask, read, "**/.env"), rule("write", policy.Ask, write, "**/.env"), rule("both", policy.Ask, nil, "**/both"),
		rule("links", policy.Ask, nil, "**/links/*"), rule("tree", policy.Ask, read, "${workspace}/tree/**"), rule("fixed", policy.Ask, write, "${workspace}/tree/fixed"),
	}}, ".env", "both", "data", "tree/fixed", "tree/b")
	must.Do(t, os.Mkdir(filepath.Join(p.ws, "links"), 0o700))
	p.link("data", "links/a")
	yes := func(kind policy.Kind, name string) policy.Effect {
		path := filepath.Join(p.ws, name)
		canonical := must.Get(filepath.EvalSymlinks(path))(t)
		return policy.Effect{Kind: kind, Path: path, Canonical: canonical, Tree: name == "tree"}
	}
	all := []string{".env", "both", "data", "tree"}
	for _, c := range []struct {
		kind policy.Kind
		name string
		want []string
	}{
		{policy.Read, ".env", []string{"+.env", "both", "data", "tree"}},
		{policy.Write, ".env", all},
		{policy.Read, "both", []string{"+both", ".env", "data", "tree"}},
		{policy.Write, "both", []string{".env", "data", "tree"}},
		{policy.Read, "data", all}, // which asks nothing by this name
		{policy.Read, "links/a", []string{"+data", ".env", "both", "tree"}},
		{policy.Read, "tree", []string{"+tree/fixed", ".env", "both", "data"}},
		{policy.Write, "tree", all},
		{policy.Write, "tree/fixed", all},
	} {
		if d := cmp.Diff(c.want, p.masked(p.policy, yes(c.kind, c.name))); d != "" {
			t.Errorf("%s %s: %s", c.kind, c.name, d)
		}
	}
}
