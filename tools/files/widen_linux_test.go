package files

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/sandbox/escalation"
	"github.com/toold/toold/tools"
)

// beside makes a folder that is neither in the workspace nor in a place of which each
// call has its own.
func beside(t *testing.T) string {
	t.Helper()
	home, _ := os.UserHomeDir()
	for _, place := range []string{home, "."} {
		place, err := filepath.Abs(place)
		if err == nil {
			place, err = filepath.EvalSymlinks(place)
		}
		if err != nil || (sandbox.Profile{}).Scratch(place) {
			continue
		}
		if dir, err := os.MkdirTemp(place, "toold-test-"); err == nil {
			t.Cleanup(func() { os.RemoveAll(dir) })
			return dir
		}
	}
	t.Skip("neither the home nor this folder can be written and seen by calls")
	return ""
}

func TestAFileIsWrittenWhereAPersonAddsItsFolder(t *testing.T) {
	t.Parallel()
	w, dir := newWorkspace(t), beside(t)
	path := filepath.Join(dir, "deep", "f")
	inv := w.must("write_file", args{"file_path": path, "content": "new\n"})
	// What is shown is what would be written, and that it would fail as it is.
	if p := inv.(tools.Previewed).Preview(t.Context()); !strings.Contains(p.Text, "As it is now this would fail") || !strings.Contains(p.Diff, "+new") {
		t.Errorf("shown is %+v", p)
	}
	if r := inv.Execute(t.Context(), tools.IO{}); !r.IsError || !strings.Contains(r.Text, "outside of the workspace") {
		t.Errorf("without: %+v", r)
	}
	bounds := inv.(tools.Confined).EscalationLimits(escalation.Limits{Mode: sandbox.FullAccess, Network: escalation.Full, Write: []string{dir}})
	profile := sandbox.Profile{Mode: sandbox.WorkspaceWrite, Workspace: w.root}
	for _, words := range []escalation.Words{{Profile: "danger-full-access"}, {Network: "full"}, {Host: "x.example"}} {
		if _, err := bounds.Check(profile, words); err == nil {
			t.Errorf("a file tool is given %+v", words)
		}
	}
	g := must.Get(bounds.Check(profile, escalation.Words{Write: dir}))(t)
	defer g.Close()
	r := inv.Execute(t.Context(), tools.IO{Escalation: g})
	if b, err := os.ReadFile(path); err != nil || string(b) != "new\n" || r.IsError {
		t.Errorf("with: %q, %v, %+v", b, err, r)
	}
	w.refused("write_file", args{"file_path": path, "content": "newer\n"}, "outside of the workspace")
}

func TestAFileIsNotWrittenInAFolderThatTookThePlaceOfAnother(t *testing.T) {
	t.Parallel()
	w, dir := newWorkspace(t), beside(t)
	root := filepath.Join(dir, "root")
	must.Do(t, os.Mkdir(root, 0o700))
	inv := w.must("write_file", args{"file_path": root + "/f", "content": "new\n"})
	g := must.Get(escalation.Limits{Write: []string{dir}}.Check(sandbox.Profile{Mode: sandbox.WorkspaceWrite, Workspace: w.root}, escalation.Words{Write: root}))(t)
	defer g.Close()
	must.Do(t, os.Rename(root, root+"-away"))
	must.Do(t, os.Mkdir(root, 0o700))
	r := inv.Execute(t.Context(), tools.IO{Escalation: g})
	if left, _ := filepath.Glob(dir + "/*/f"); !r.IsError || len(left) > 0 {
		t.Errorf("wrote %q: %+v", left, r)
	}
}
