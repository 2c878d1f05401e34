package bash

import (
	"strings"
	"testing"

	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/tools"
)

func TestAFailedCommandIsToldWhatTheSandboxRefused(t *testing.T) {
	t.Parallel()
	v := &invocation{dir: "/w/sub", profile: sandbox.Profile{
		Mode: sandbox.WorkspaceWrite, Workspace: "/w", Hide: []string{"/home/u/.ssh"}, Protect: []string{"/w/.git/config", "/w/sub/.vscode"},
	}}
	for line, want := range map[string]string{
		"touch: cannot touch '/etc/x': Read-only file system":                          "cannot write /etc/x: it is outside of the workspace",
		"bash: line 1: /opt/file: Read-only file system":                               "sandbox.write",
		"bash: line 3: .vscode/tasks.json: Read-only file system":                      "cannot change /w/sub/.vscode",
		"error: could not write config file ../.git/config: Device or resource busy":   "cannot change /w/.git/config: ",
		"error: could not write config file '../.git/config': Device or resource busy": "cannot change /w/.git/config: ",
		"mv: cannot move '/w/.git' to '/w/g': Device or resource busy":                 "cannot change /w/.git/config: ",
		"cat: /home/u/.ssh/id: Permission denied":                                      "hidden by sandbox.hide",
		"PermissionError: [Errno 1] Operation not permitted: '/etc/passwd'":            "cannot write /etc/passwd",
		"open /w/sub/file: Permission denied":                                          "",
		"cat: note: No such file or directory":                                         "",
		"the sandbox said '/etc/x' is fine":                                            "",
	} {
		r := tools.Result{Text: "Exit code: 1", Exit: &tools.Exit{Code: 1}}
		v.addInferred(&r, "other\n"+line+"\n"+line+"\n")
		switch got := strings.TrimPrefix(r.Text, "Exit code: 1"); {
		case want == "" && got != "":
			t.Errorf("%s: %s", line, got)
		case strings.Count(got, want) == 0 || want != "" && !strings.Contains(got, "inferred"):
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
	r := tools.Result{Exit: &tools.Exit{}}
	if v.addInferred(&r, "touch: cannot touch '/etc/x': Read-only file system\n"); r.Text != "" {
		t.Errorf("of a command that succeeded: %q", r.Text)
	}
}

func TestTheEndOfTheOutputIsKept(t *testing.T) {
	t.Parallel()
	end := &tail{}
	for range 3 {
		if _, err := end.Write([]byte(strings.Repeat("x", tailBytes-1) + "é")); err != nil {
			t.Fatal(err)
		}
	}
	if got := end.text(); len(got) > tailBytes || !strings.HasSuffix(got, "xé") {
		t.Errorf("%d bytes, the last of them %q", len(got), got[len(got)-5:])
	}
}
