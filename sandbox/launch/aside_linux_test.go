package launch_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/sandbox/launch"
)

// A hidden file is moved aside while a shell starts to wait, and its other name takes its place before the script runs:
// the mount that covers it has moved with the first name.
func TestAHiddenFileThatWasAsideWhenAShellBeganToWaitStaysHidden(t *testing.T) {
	t.Parallel()
	ws := must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
	must.Do(t, errors.Join(
		os.WriteFile(ws+"/key", []byte("secret\n"), 0o644), os.Link(ws+"/key", ws+"/new"), unix.Mkfifo(ws+"/go", 0o600),
		os.WriteFile(ws+"/bash", []byte("#!/bin/sh\nread x <"+ws+"/go\nexec env -i BASH_ENV=$BASH_ENV /bin/bash \"$@\"\n"), 0o755)))
	aside := make(chan error, 1)
	go func() {
		f, err := os.OpenFile(ws+"/go", os.O_WRONLY, 0) // waits for its reader
		if err == nil {
			err = errors.Join(os.Rename(ws+"/key", ws+"/old"), f.Close())
		}
		aside <- err
	}()
	var slots launch.Slots
	defer slots.Close()
	streams := launch.NewStreams(t)
	call := must.Get(launch.Start(t.Context(), launch.Command{
		Argv: []string{ws + "/bash", "-c"}, Env: []string{"PATH=" + os.Getenv("PATH")}, Dir: ws, Room: 100, Slots: &slots,
		Stdin: streams.Null, Stdout: streams.Out, Stderr: streams.Out,
		Profile: sandbox.Profile{Mode: sandbox.WorkspaceWrite, Workspace: ws, Hide: []string{ws + "/key"}},
	}))(t)
	must.Do(t, errors.Join(<-aside, os.Rename(ws+"/new", ws+"/key"), call.SetScript("cat "+ws+"/key")))
	err := call.Release(t.Context())
	if err == nil {
		<-call.Exited()
	}
	call.End()
	if printed := streams.Printed(t); printed != "" || !errors.Is(err, launch.ErrGone) {
		t.Errorf("it printed %q, %v", printed, err)
	}
}
