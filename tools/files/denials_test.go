package files

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/sandbox/protect"
)

func TestWhatTheProfileRefusesIsToldAsADenial(t *testing.T) {
	t.Parallel()
	var root string
	w := newWorkspace(t, func(o *Options) {
		root = o.Workspace
		o.Profile.Hide = []string{root + "/hidden"}
		g := must.Get(protect.New(protect.Options{Roots: []string{root}, Names: []string{".envrc"}, Quarantine: t.TempDir()}))(t)
		t.Cleanup(g.Close)
		o.Protect = g
	})
	w.put("hidden/key", "x")
	for _, c := range []struct {
		tool string
		a    args
		want sandbox.Denial
	}{
		{"read_file", args{"file_path": "hidden/key"}, sandbox.Denial{Kind: "file", Op: "read", Target: root + "/hidden/key", Setting: "sandbox.hide"}},
		{"write_file", args{"file_path": "/etc/x", "content": "x"}, sandbox.Denial{Kind: "file", Op: "write", Target: "/etc/x", Setting: "sandbox.write"}},
		{"write_file", args{"file_path": ".envrc", "content": "x"}, sandbox.Denial{Kind: "protected", Op: "write", Target: root + "/.envrc", Setting: "sandbox.protect"}},
	} {
		r := w.run(c.tool, c.a)
		if len(r.Denials) != 1 || !r.IsError {
			t.Errorf("%s %v: %+v", c.tool, c.a, r)
			continue
		}
		got := r.Denials[0]
		if r.Text != got.Error() {
			t.Errorf("the text is %q and the denial %q", r.Text, got.Error())
		}
		c.want.Exact, got.Hint = true, ""
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s %v (-want +got)\n%s", c.tool, c.a, diff)
		}
	}
	if r := w.run("read_file", args{"file_path": "none"}); len(r.Denials) > 0 {
		t.Errorf("a file that is not there was denied: %+v", r.Denials)
	}
}
