package files

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/tools"
)

// What a call may not read, it learns nothing of: neither whether it is there, nor what it is, nor where it leads.
func TestNoAnswerDependsOnWhatIsHidden(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, func(o *Options) { o.Profile.Hide = []string{o.Workspace + "/hidden"} })
	w.put("hidden/file", "secret\n")
	w.put("hidden/dir/below", "secret\n")
	w.put("outside", "x\n")
	w.link("../outside", "hidden/link")
	w.link("loop", "hidden/loop")
	must.Do(t, os.Mkdir(filepath.Join(w.root, "hidden/shut"), 0))
	for tool, list := range map[string][]args{
		"read_file":                   {{"file_path": "hidden/NAME"}, {"file_path": "hidden/NAME/x"}, {"file_path": "hidden/NAME/../../outside"}},
		"write_file":                  {{"file_path": "hidden/NAME", "content": "x"}, {"file_path": "hidden/NAME/x", "content": "x"}, {"file_path": "hidden/NAME/../../outside", "content": "x"}},
		"edit_file":                   {{"file_path": "hidden/NAME", "old_string": "a", "new_string": "b"}, {"file_path": "hidden/NAME/x", "old_string": "a", "new_string": "b"}},
		"str_replace_based_edit_tool": {{"command": "view", "path": "hidden/NAME"}, {"command": "create", "path": "hidden/NAME", "file_text": "x"}},
		"grep":                        {{"pattern": "secret", "path": "hidden/NAME"}, {"pattern": "secret", "path": "hidden/NAME/x"}},
		"glob":                        {{"pattern": "*", "path": "hidden/NAME"}, {"pattern": "hidden/NAME*"}},
		"look":                        {{"op": "stat", "file_path": "hidden/NAME"}, {"op": "list", "file_path": "hidden/NAME"}, {"op": "read", "file_path": "hidden/NAME/x"}},
		"apply_patch": {
			{"patch": "*** Begin Patch\n*** Delete File: hidden/NAME\n*** End Patch"},
			{"patch": "*** Begin Patch\n*** Add File: hidden/NAME\n+x\n*** End Patch"},
			{"patch": "*** Begin Patch\n*** Update File: outside\n*** Move to: hidden/NAME\n@@\n-x\n+y\n*** End Patch"},
		},
	} {
		for _, a := range list {
			answer := func(name string) string {
				mine := args{}
				for key, value := range a {
					mine[key] = strings.ReplaceAll(value.(string), "NAME", name)
				}
				inv, err := w.build(tool, mine)
				if err != nil {
					return strings.ReplaceAll(err.Error(), name, "NAME")
				}
				effects := ""
				for _, e := range inv.Effects() {
					effects += e.String() + " at " + e.Canonical + "\n"
				}
				io := tools.IO{Judge: func(policy.Effect) policy.Decision { return policy.Decision{Action: policy.Allow} }}
				result := inv.Execute(t.Context(), io)
				return strings.ReplaceAll(inv.Text()+"\n"+effects+result.Text, name, "NAME")
			}
			want := answer("none")
			for _, name := range []string{"file", "dir", "link", "loop", "shut"} {
				if got := answer(name); got != want {
					t.Errorf("%s %v\n%s: %s\nmissing: %s", tool, a, name, got, want)
				}
			}
		}
	}
}
