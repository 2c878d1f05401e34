package sandbox

import (
	"context"
	"os"
	"testing"

	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/sandbox/caches"
	"github.com/toold/toold/sandbox/internal/helper"
)

func TestToolCachesMayBeChanged(t *testing.T) {
	t.Parallel()
	none := func(_ context.Context, list []helper.Overlay) ([]*os.File, []error, error) {
		return make([]*os.File, len(list)), make([]error, len(list)), nil
	}
	set := must.Get(caches.Open(t.Context(), none, t.TempDir(), []caches.Cache{{Path: "/usr/share"}}))(t)
	defer set.Close()
	p := Profile{Mode: WorkspaceWrite, Workspace: t.TempDir(), Caches: set}
	if d := p.Denied("/usr/share/x", true); d != nil {
		t.Errorf("in a cache: %v", d)
	}
	if d := p.Denied("/usr/lib/x", true); d == nil || d.Setting != "sandbox.write" {
		t.Errorf("beside a cache: %v", d)
	}
	p.Mode = ReadOnly
	if d := p.Denied("/usr/share/x", true); d == nil || d.Setting != "sandbox.profile" {
		t.Errorf("in read-only: %v", d)
	}
}
