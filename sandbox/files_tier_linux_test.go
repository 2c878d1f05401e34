package sandbox_test

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/toold/toold/sandbox"
)

func TestFilesAreOpenedInTierBAsCommandsRunThere(t *testing.T) {
	if !maskedProc(t) {
		return
	}
	ws, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	p, _, err := sandbox.Choose(t.Context(), sandbox.Profile{Mode: sandbox.WorkspaceWrite, Workspace: ws}, sandbox.TierB)
	if err != nil {
		t.Fatal(err)
	}
	var files sandbox.Files
	defer files.Close()
	path := filepath.Join(ws, "f")
	if err := files.Replace(t.Context(), p, path, sandbox.Replacement{Data: []byte("content")}); err != nil {
		t.Fatal(err)
	}
	f, report, err := files.Open(t.Context(), p, path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if b, err := io.ReadAll(f); err != nil || string(b) != "content" {
		t.Errorf("it holds %q, %v", b, err)
	}
	if report.Tier != "B" || report.Degraded == "" {
		t.Errorf("report %+v", report)
	}
	outside := filepath.Join(filepath.Dir(ws), "outside")
	if err := files.Replace(t.Context(), p, outside, sandbox.Replacement{Data: []byte("x")}); err == nil {
		t.Error("written outside of the workspace")
	}
	if _, err := os.Lstat(outside); err == nil {
		t.Error("it is there")
	}
}
