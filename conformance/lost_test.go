//go:build linux

package conformance

import (
	"bytes"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/toold/toold/client"
	"github.com/toold/toold/message"
)

// TestWhatIsKilledFromOutsideIsTold kills, as an administrator could, the helper of a
// running call, and of another its shell alone. Each call ends at once, says what
// happened, and leaves nothing.
func TestWhatIsKilledFromOutsideIsTold(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	c := r.dial(client.Options{})
	for i, part := range []struct {
		name   string
		victim func(helper int) int
		want   string
	}{
		{"helper", func(helper int) int { return helper }, "was killed from outside toold"},
		{"shell", func(helper int) int { return childrenOf(helper)[0].pid }, "Terminated by SIGKILL"},
	} {
		mark := fmt.Sprintf("5%09d.%d", time.Now().UnixNano()%1e9, i)
		helper, killed := 0, false
		ret, err := c.Call(t.Context(), client.Call{Tool: "bash", Arguments: map[string]any{
			"command": "(trap '' TERM; setsid sleep " + mark + ") & echo ready; wait", "terminal": "off",
		}}, client.Events{
			Started: func(s message.ToolStarted) { helper = s.PID },
			Output: func(_ message.OutputDelta, data []byte) {
				if !killed && bytes.Contains(data, []byte("ready")) {
					killed = true
					syscall.Kill(part.victim(helper), syscall.SIGKILL)
				}
			},
		})
		if err != nil || ret.ExitCode == nil || *ret.ExitCode != 137 || !strings.Contains(ret.Result, part.want) {
			t.Errorf("%s killed: %v, %+v", part.name, err, ret)
		}
		if left := survivors(mark); len(left) > 0 {
			t.Errorf("%s killed: %q live on", part.name, left)
		}
	}
	if ret := r.bash(c, "echo still there", "off", client.Events{}); !strings.Contains(ret.Result, "still there") {
		t.Errorf("the next call returned %+v", ret)
	}
}
