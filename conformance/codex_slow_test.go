//go:build linux

package conformance

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/gorilla/websocket"

	"github.com/toold/toold/client"
	"github.com/toold/toold/message"
)

// silent dials a client that reads nothing, and for which the kernel keeps little.
func (r codexRig) silent(t *testing.T) *websocket.Conn {
	t.Helper()
	small := net.Dialer{Control: func(_, _ string, c syscall.RawConn) error {
		return c.Control(func(fd uintptr) {
			if err := syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 4096); err != nil {
				t.Error(err)
			}
		})
	}}
	d := websocket.Dialer{NetDialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		return small.DialContext(ctx, network, addr)
	}}
	url := strings.TrimSuffix(r.daemon.ws, "/v1/ws") + "/v1/codex"
	ws, _, err := d.DialContext(t.Context(), url, http.Header{"Authorization": {"Bearer " + r.daemon.tokens["agent"]}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ws.Close() })
	request := map[string]any{"id": 0, "method": "initialize", "params": map[string]any{"clientName": "silent", "resumeSessionId": nil}}
	if err := ws.WriteJSON(request); err != nil {
		t.Fatal(err)
	}
	if _, _, err := ws.ReadMessage(); err != nil {
		t.Fatal(err)
	}
	return ws
}

// A client that does not read is not read from: what it is owed would pile up in the
// daemon. It gets all answers, in order, when it reads.
func TestCodexThatDoesNotReadIsNotReadFrom(t *testing.T) {
	t.Parallel()
	r := newCodexRig(t)
	ws := r.silent(t)
	const requests = 200_000
	var sent atomic.Int64
	done := make(chan struct{})
	padding := strings.Repeat("x", 1000)
	// Ends when all is sent, or the connection is closed.
	go func() {
		defer close(done)
		for i := range requests {
			frame := fmt.Sprintf(`{"id":%d,"method":"environment/info","params":{"padding":%q}}`, i+1, padding)
			if ws.WriteMessage(websocket.TextMessage, []byte(frame)) != nil {
				return
			}
			sent.Add(1)
		}
	}()
	other, _ := r.connect(t, "")
	const rounds = 40
	stood := int64(-1)
	for quiet, n := 0, 0; quiet < rounds; quiet++ { // until it gets rid of nothing while others are served
		n++
		if out, code := other.run(r.start(fmt.Sprint(n), "echo on", nil)); out["stdout"] != "on\n" || code != 0 {
			t.Fatalf("another client's command printed %q and ended with %d", out, code)
		}
		if now := sent.Load(); now != stood {
			quiet, stood = 0, now
		}
	}
	if stood == requests {
		t.Fatal("all its requests were taken, and it has read no answer")
	}
	for want := 1; want <= int(stood); want++ {
		var f struct{ ID int }
		_, data, err := ws.ReadMessage()
		if err != nil || json.Unmarshal(data, &f) != nil || f.ID != want {
			t.Fatalf("answer %d is %s, %v", want, data, err)
		}
	}
	ws.Close()
	<-done
}

// The record has what a client did not read in time.
func TestCodexGetsAFloodThatItReadsLate(t *testing.T) {
	t.Parallel()
	r := newCodexRig(t)
	ws := r.silent(t)
	const lines = 15_000
	script := fmt.Sprintf(`for ((i = 0; i < %d; i++)); do echo $i; echo $i >&2; done; echo >made`, lines)
	if err := ws.WriteJSON(map[string]any{"id": 1, "method": "process/start", "params": r.start("1", script, nil)}); err != nil {
		t.Fatal(err)
	}
	other, _ := r.connect(t, "")
	if _, code := other.run(r.start("2", "until test -e made; do sleep 0.05; done", nil)); code != 0 {
		t.Fatalf("waiting for its end has ended with %d", code)
	}
	var want strings.Builder
	for i := range lines {
		fmt.Fprintln(&want, i)
	}
	got := map[string]string{}
	for last := 0; ; {
		var f codexFrame
		_, data, err := ws.ReadMessage()
		if err != nil || json.Unmarshal(data, &f) != nil || f.Error != nil {
			t.Fatalf("got %s, %v", data, err)
		}
		if f.Method == "" {
			continue
		}
		if f.Params.Seq != last+1 {
			t.Fatalf("%s has the number %d after %d", f.Method, f.Params.Seq, last)
		}
		last = f.Params.Seq
		got[f.Params.Stream] += string(f.Params.Chunk)
		if f.Method == "process/closed" {
			break
		}
	}
	if got["stdout"] != want.String() || got["stderr"] != want.String() {
		t.Errorf("it got %d and %d bytes, want %d each", len(got["stdout"]), len(got["stderr"]), want.Len())
	}
}

// The daemon holds the content of few files for a client that does not read.
func TestCodexThatDoesNotReadHoldsFewFiles(t *testing.T) {
	t.Parallel()
	r := newCodexRig(t)
	text := bytes.Repeat([]byte("x"), 4<<20)
	if err := os.WriteFile(filepath.Join(r.site.workspace, "large"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	ws := r.silent(t)
	const requests = 60
	for i := range requests {
		request := map[string]any{"id": i + 1, "method": "fs/readFile", "params": map[string]any{"path": "file://" + r.site.workspace + "/large"}}
		if err := ws.WriteJSON(request); err != nil {
			t.Fatal(err)
		}
	}
	other, _ := r.connect(t, "")
	for i := range 40 { // meanwhile the others are served
		if out, code := other.run(r.start(fmt.Sprint(i), "echo on", nil)); out["stdout"] != "on\n" || code != 0 {
			t.Fatalf("another client's command printed %q and ended with %d", out, code)
		}
	}
	answer := []byte(`"` + base64.StdEncoding.EncodeToString(text) + `"`)
	for range requests {
		if _, data, err := ws.ReadMessage(); err != nil || !bytes.Contains(data, answer) {
			t.Fatalf("got %.200s, %v", data, err)
		}
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", r.daemon.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	_, peak, _ := strings.Cut(string(status), "VmHWM:")
	var kib int
	if _, err := fmt.Sscan(peak, &kib); err != nil || kib > 400<<10 {
		t.Errorf("the daemon has held %d KiB, %v", kib, err)
	}
	t.Logf("the daemon has held %d KiB", kib)
}

// A list is bounded by its size, too, and says that it is cut.
func TestCodexGetsNoListWithoutBound(t *testing.T) {
	t.Parallel()
	r := newCodexRig(t)
	many := filepath.Join(r.site.workspace, "many")
	if err := os.Mkdir(many, 0o755); err != nil {
		t.Fatal(err)
	}
	for i := range 14_000 { // of 320 bytes each
		if err := os.WriteFile(filepath.Join(many, fmt.Sprintf("%0250d", i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, _ := r.connect(t, "")
	if f := c.answer(c.ask("fs/readDirectory", map[string]any{"path": r.uri("many")})); f.Error == nil || !strings.Contains(f.Error.Message, "with a command") {
		t.Errorf("fs/readDirectory was answered with %.200s %+v", f.Result, f.Error)
	}
	var walk struct {
		Entries   []struct{ Path string }
		Truncated bool
	}
	options := map[string]any{"maxDepth": 2, "maxDirectories": 10, "maxEntries": 100_000}
	for range 10 { // more than may be unwritten: each gives its slot back
		c.must("fs/walk", map[string]any{"path": r.uri("many"), "options": options}, &walk)
		if n := len(walk.Entries); !walk.Truncated || n == 0 || n == 14_000 {
			t.Errorf("the walk found %d names, truncated: %t", n, walk.Truncated)
		}
	}
}

// A connection that another one of its session has replaced still ends, and so does the daemon: a request of it that
// waits for a person is not forgotten with the other connection.
func TestAReplacedConnectionOfCodexEndsWithItsRequests(t *testing.T) {
	t.Parallel()
	r := newCodexRig(t)
	if err := r.daemon.stop(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := r.site.add(map[string]any{"limits": map[string]any{"linger": "1h"}}); err != nil {
		t.Fatal(err)
	}
	var err error
	if r.daemon, err = startDaemon(t.Context(), r.program, r.site); err != nil {
		t.Fatal(err)
	}
	approver, err := client.Dial(t.Context(), client.Options{URL: r.daemon.ws, Token: r.daemon.tokens["approver"]})
	if err != nil {
		t.Fatal(err)
	}
	defer approver.Close()
	asked := make(chan message.ApprovalRequest, 9)
	go func() {
		_ = approver.Approvals(t.Context(), client.ApprovalEvents{Requested: func(q message.ApprovalRequest) { asked <- q }})
	}()
	for i := range 8 { // either connection may leave first
		first, session := r.connect(t, "")
		first.ask("process/start", r.start(fmt.Sprint(i), "mkdir made", nil))
		<-asked
		second, _ := r.connect(t, session)
		second.ws.Close()
	}
	if err := r.daemon.stop(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
}
