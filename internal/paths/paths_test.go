package paths_test

import (
	"path/filepath"
	"testing"

	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/internal/paths"
)

func TestWithinComparesComponents(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		path, root    string
		within, below bool
	}{
		{"/a/b", "/a/b", true, false},
		{"/a/b/c", "/a/b", true, true},
		{"/a/bc", "/a/b", false, false},
		{"/a", "/a/b", false, false},
		{"/", "/", true, false},
		{"/a", "/", true, true},
		{"/a", "", false, false},
		{"", "", false, false},
	} {
		if got := paths.Within(c.path, c.root); got != c.within {
			t.Errorf("Within(%q, %q) = %v", c.path, c.root, got)
		}
		if got := paths.Below(c.path, c.root); got != c.below {
			t.Errorf("Below(%q, %q) = %v", c.path, c.root, got)
		}
	}
}

func TestResolveMeansWhatTheKernelMeans(t *testing.T) {
	t.Parallel()
	root := must.Tree(t, map[string]string{
		"d/e/f": "x", "up": "-> d/e", "abs": "-> /etc", "chain": "-> up/f", "dangling": "-> nowhere/x",
		"a": "-> b", "b": "-> a", "dots": "-> ./d/../d/./e//",
	})
	for path, want := range map[string]string{
		"d/e/f":            "d/e/f",
		"up/../f":          "d/f", // not "f"
		"up/f":             "d/e/f",
		"chain":            "d/e/f",
		"dots/f":           "d/e/f",
		"./d//e/./f":       "d/e/f",
		"new/x/../y":       "new/y",
		"dangling":         "nowhere/x",
		"dangling/sub":     "nowhere/x/sub",
		"abs/passwd":       "/etc/passwd",
		"d/e/f/under-file": "d/e/f/under-file",
		"":                 "",
	} {
		got, err := paths.Resolve(root + "/" + path)
		if !filepath.IsAbs(want) {
			want = filepath.Join(root, want)
		}
		if err != nil || got != want {
			t.Errorf("paths.Resolve(%q) = %q, %v; want %q", path, got, err, want)
		}
	}
	for _, path := range []string{root + "/a", "relative", ""} {
		if got, err := paths.Resolve(path); err == nil {
			t.Errorf("paths.Resolve(%q) = %q; want an error", path, got)
		}
	}
	if got, err := paths.Resolve("/../../etc"); got != "/etc" || err != nil {
		t.Errorf("above the root: %q, %v", got, err)
	}
}
