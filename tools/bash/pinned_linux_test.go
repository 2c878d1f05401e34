package bash_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toold/toold/executor"
	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/bash"
)

// While a person thinks about a call, another one may replace its folder.
func TestAScriptRunsInTheFolderThatWasJudged(t *testing.T) {
	t.Parallel()
	ws := must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
	dir := filepath.Join(ws, "dir")
	must.Do(t, os.Mkdir(dir, 0o700))
	tool := bash.New(bash.Options{
		Workspace: ws, Terminal: executor.Off, Env: executor.BaseEnv(executor.EnvOptions{From: os.Environ()}),
		Profile: sandbox.Profile{Mode: sandbox.WorkspaceWrite, Workspace: ws},
	})
	args := must.Get(json.Marshal(map[string]string{"command": "pwd -P; cat hostname", "cwd": "dir"}))(t)
	inv := must.Get(tool.Build(args))(t)
	must.Do(t, os.Remove(dir))
	must.Do(t, os.Symlink("/etc", dir))
	r, out := run(t, inv, tools.IO{})
	if !r.IsError || out != "" || !strings.Contains(r.Text, "replaced after the call was judged") {
		t.Errorf("printed %q, %+v", out, r)
	}
}
