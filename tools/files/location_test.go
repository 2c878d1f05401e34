package files

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/toold/toold/tools"
)

func TestACallIsLocatedUnderEveryNameOfItsPath(t *testing.T) {
	t.Parallel()
	for _, tool := range New(Options{Workspace: "/ws", Home: "/home/ada"}) {
		located, ok := tool.(tools.Located)
		if !ok {
			t.Errorf("%s has no location", tool.Definition().Name)
			continue
		}
		if tool.Definition().Name == "apply_patch" {
			args, err := json.Marshal(patchOf("*** Delete File: ~/x", "*** Update File: y", "*** Move to: /z"))
			if got, runs := located.Location(args); err != nil || !slices.Equal(got, []string{"/home/ada/x", "y", "/z"}) || runs {
				t.Errorf("apply_patch: %q, %t, %v", got, runs, err)
			}
			continue
		}
		for args, want := range map[string]string{
			`{"file_path":"/a/x"}`: "/a/x", `{"path":"/a/x"}`: "/a/x", `{"filePath":"/a/x"}`: "/a/x",
			`{"dir_path":"/a"}`: "/a", `{"directory":"/a"}`: "/a", `{"path":"~/x"}`: "/home/ada/x", `{"path":"x"}`: "x",
			`{"pattern":"/a"}`: "", `{}`: "", `{"path":1}`: "", `[`: "",
		} {
			if got, runs := located.Location(json.RawMessage(args)); !slices.Equal(got, []string{want}) || runs {
				t.Errorf("%s %s: %q, %t, want %q", tool.Definition().Name, args, got, runs, want)
			}
		}
	}
}
