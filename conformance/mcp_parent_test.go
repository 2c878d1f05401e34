//go:build linux

package conformance

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

// TestMCPEndsWithItsParent ends the program that started `toold mcp`, whose standard input
// stays open.
func TestMCPEndsWithItsParent(t *testing.T) {
	t.Parallel()
	c := newCarefulSite(t, daemonOrSkip(t))
	near, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out, far, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []*os.File{near, in, out, far} {
		defer f.Close()
	}
	parent := exec.Command("sh", "-c", `"$@" <&3 >&4 & echo $!; read -r end`, "sh",
		c.daemon.cmd.Path, "mcp", "-C", c.site.workspace, "--state-dir", c.site.state, "--config", c.site.config)
	parent.Env, parent.Stderr, parent.ExtraFiles = []string{"HOME=" + c.site.home, "PATH=" + os.Getenv("PATH")}, os.Stderr, []*os.File{near, far}
	stay, err1 := parent.StdinPipe()
	said, err2 := parent.StdoutPipe()
	if err := parent.Start(); err1 != nil || err2 != nil || err != nil {
		t.Fatal(err1, err2, err)
	}
	line, err := bufio.NewReader(said).ReadString('\n')
	pid, problem := strconv.Atoi(strings.TrimSpace(line))
	if err != nil || problem != nil {
		t.Fatal(err, problem)
	}
	if _, err := io.WriteString(in, `{"jsonrpc":"2.0","id":1,"method":"ping"}`+"\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil { // it runs
		t.Fatal(err)
	}
	stay.Close()
	if err := parent.Wait(); err != nil && parent.ProcessState.ExitCode() != 1 { // read found the end
		t.Fatal(err)
	}
	eventually(t, "the server ends", func() bool { return hasEnded(pid) })
}
