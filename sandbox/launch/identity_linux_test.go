package launch

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/toold/toold/internal/must"
)

const nobody = 65534

// TestWhatCannotBeEndedIsReported has an unconfined helper that leaves a process of another user,
// as sudo does. This binary plays the helper and the daemon, too.
func TestWhatCannotBeEndedIsReported(t *testing.T) {
	switch role, identity, _ := strings.Cut(os.Getenv("PLAY_IDENTITY"), " "); role {
	case "helper":
		playLeaver(t)
		return
	case "daemon":
		fmt.Println(KillIdentity(identity))
		return
	}
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root has processes of two users")
	}
	play := func(role string) *exec.Cmd {
		c := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^TestWhatCannotBeEndedIsReported$")
		c.Env, c.Stderr = append(os.Environ(), "PLAY_IDENTITY="+role), os.Stderr
		return c
	}
	helper := play("helper")
	helper.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	in := must.Get(helper.StdinPipe())(t)
	defer in.Close()
	out := must.Get(helper.StdoutPipe())(t)
	must.Do(t, helper.Start())
	defer helper.Wait()
	left := 0
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || scan(line, &left) != nil {
		t.Fatalf("the helper says %q, %v", line, err)
	}
	defer syscall.Kill(left, syscall.SIGKILL)
	identity := must.Get(identityOf(helper.Process.Pid))(t)
	daemon := play("daemon " + identity)
	daemon.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	got, err := daemon.Output()
	if want := fmt.Sprintf("true cannot end what the call has left: list it with ps -s %d", helper.Process.Pid); err != nil || !strings.Contains(string(got), want) {
		t.Errorf("%v, it says %q, want %q", err, got, want)
	}
}

func scan(line string, pid *int) error {
	_, err := fmt.Sscan(line, pid)
	return err
}

// playLeaver starts a process of root's, and goes on as another user until it is killed.
func playLeaver(t *testing.T) {
	left := exec.Command("sleep", "1000")
	must.Do(t, left.Start())
	must.Do(t, syscall.Setuid(nobody))
	fmt.Println(left.Process.Pid)
	_, _ = io.Copy(io.Discard, os.Stdin)
}
