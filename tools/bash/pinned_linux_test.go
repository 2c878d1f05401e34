package bash_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toold/toold/executor"
	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/bash"
)

// While a person thinks about a call, another one may replace its folder.
func TestAScriptRunsInTheFolderThatWasJudged(t *testing.T) {
	t.Parallel()
	ws, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(ws, "dir")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	tool := bash.New(bash.Options{
		Workspace: ws, Terminal: executor.Off, Env: executor.BaseEnv(executor.EnvOptions{From: os.Environ()}),
		Profile: sandbox.Profile{Mode: sandbox.WorkspaceWrite, Workspace: ws},
	})
	args, err := json.Marshal(map[string]string{"command": "pwd -P; cat hostname", "cwd": "dir"})
	if err != nil {
		t.Fatal(err)
	}
	inv, err := tool.Build(args)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc", dir); err != nil {
		t.Fatal(err)
	}
	r, out := run(t, inv, tools.IO{})
	if !r.IsError || out != "" || !strings.Contains(r.Text, "replaced after the call was judged") {
		t.Errorf("printed %q, %+v", out, r)
	}
}
