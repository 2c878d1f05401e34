package launch

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/toold/toold/internal/paths"
	"github.com/toold/toold/sandbox"
)

// trialScript does what is allowed, then what must fail.
const trialScript = `
echo x > "$1/in/file" || exit 10
echo x > "$1/out/file" && exit 11
cat "$1/hidden/secret" && exit 12
echo x > "$1/in/.envrc" && exit 13
(exec 3<>"/dev/tcp/127.0.0.1/$2") && exit 14
exit 0`

// trialFailures describes the exit codes of trialScript.
var trialFailures = map[int]string{
	10: "a command cannot write in its workspace",
	11: "a command can write outside of its workspace",
	12: "a command can read a hidden file",
	13: "a command can write a protected name",
	14: "a command can reach the network",
}

// trial runs a command that tries to escape, since the profile is not tested on every version of macOS. The error
// says what was not confined.
func trial(ctx context.Context, launch func(p sandbox.Profile, tmp string) (prefix []string, err error)) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	dir, err := trialDir()
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer server.Close()
	prefix, err := launch(sandbox.Profile{
		Mode: sandbox.WorkspaceWrite, Workspace: filepath.Join(dir, "in"), Hide: []string{filepath.Join(dir, "hidden")}, Names: []string{".envrc"},
	}, "")
	if err != nil {
		return err
	}
	port := server.Addr().(*net.TCPAddr).Port
	argv := append(prefix, "/bin/bash", "--noprofile", "--norc", "-c", trialScript, "trial", dir, strconv.Itoa(port))
	out, err := exec.CommandContext(ctx, argv[0], argv[1:]...).CombinedOutput()
	if exit, is := errors.AsType[*exec.ExitError](err); is && trialFailures[exit.ExitCode()] != "" {
		return errors.New(trialFailures[exit.ExitCode()])
	}
	if err != nil {
		return fmt.Errorf("%w: %.300s", err, out)
	}
	return nil
}

func trialDir() (string, error) {
	made, err := os.MkdirTemp("", "toold-trial-")
	if err != nil {
		return "", err
	}
	dir, err := paths.Resolve(made)
	for _, name := range []string{"in", "out", "hidden"} {
		if err == nil {
			err = os.Mkdir(filepath.Join(dir, name), 0o700)
		}
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "hidden", "secret"), []byte("secret\n"), 0o600)
	}
	if err != nil {
		os.RemoveAll(made)
	}
	return dir, err
}
