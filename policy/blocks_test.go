package policy

import "testing"

func TestBlocksNamesTheStrictestRuleForAPath(t *testing.T) {
	t.Parallel()
	p := compile(t, File{Name: "p.yaml", Defaults: asking(), Paths: []Rule{
		{ID: "lock", Action: Ask, Reason: "r", Ops: []Kind{Write}, Paths: []string{"/w/lock"}},
		{ID: "vault", Action: Deny, Paths: []string{"/w/vault/**"}, Except: []string{"/w/vault/a/public/**"}},
		{ID: "secret", Action: Deny, Paths: []string{"/w/vault/b", "/w/both"}},
		{ID: "both", Action: Ask, Paths: []string{"/w/both/**"}},
		{ID: "one", Action: Deny, Paths: []string{"/w/same"}},
		{ID: "all", Action: Deny, Paths: []string{"/w/same/**"}},
		{ID: "free", Action: Allow, Paths: []string{"/w/free/**"}},
	}})
	for _, c := range []struct {
		kind Kind
		path string
		want Block
	}{
		{Write, "/w/lock", Block{Ask, "lock", "r", false}},
		{Read, "/w/lock", Block{}},
		{Read, "/w/free/x", Block{}},
		{Read, "/w/vault", Block{Deny, "vault", "", false}}, // public is below it
		{Read, "/w/vault/a", Block{Deny, "vault", "", false}},
		{Read, "/w/vault/a/public", Block{}},
		{Read, "/w/vault/a/b", Block{Deny, "vault", "", true}},
		{Read, "/w/vault/ab", Block{Deny, "vault", "", true}},
		{Read, "/w/vault/b", Block{Deny, "vault", "", true}}, // of two that deny, the one for all below
		{Read, "/w/both", Block{Deny, "secret", "", false}},
		{Read, "/w/same", Block{Deny, "all", "", true}},
	} {
		got, ok := p.Blocks(c.kind, c.path, false)
		if got != c.want || ok != (c.want != Block{}) {
			t.Errorf("%v %s: %+v, %v, want %+v", c.kind, c.path, got, ok, c.want)
		}
	}
}

func TestBlocksLeavesBuiltInRulesOutOnRequest(t *testing.T) {
	t.Parallel()
	p := compile(t, File{Name: "p.yaml", Defaults: asking()})
	if b, ok := p.Blocks(Read, "/home/u/.ssh/id_rsa", false); ok {
		t.Errorf("without them: %+v", b)
	}
	if b, ok := p.Blocks(Read, "/home/u/.ssh/id_rsa", true); !ok || b.Action != Deny {
		t.Errorf("with them: %+v, %v", b, ok)
	}
}

func TestBlocksBelowFindsRulesForPathsInADirectory(t *testing.T) {
	t.Parallel()
	p := compile(t, File{Name: "p.yaml", Defaults: asking(), Paths: []Rule{
		{ID: "read", Action: Deny, Ops: []Kind{Read}, Paths: []string{"/w/a/b/secret"}},
		{ID: "write", Action: Ask, Ops: []Kind{Write}, Paths: []string{"/w/c/*/lock"}},
		{ID: "itself", Action: Deny, Paths: []string{"/w/d"}},
		{ID: "free", Action: Allow, Paths: []string{"/w/e/f"}},
	}})
	for path, want := range map[string]string{
		"/w/a": "read", "/w/a/b": "read", "/w/a/b/secret": "read", "/w/a/c": "",
		"/w/c": "write", "/w/c/x": "write", "/w/d": "itself", "/w/d/x": "", "/w/e": "",
	} {
		if got, ok := p.BlocksBelow(path); got != want || ok != (want != "") {
			t.Errorf("%s: %q, %v, want %q", path, got, ok, want)
		}
	}
}
