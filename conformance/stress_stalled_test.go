//go:build linux

package conformance

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/gorilla/websocket"

	"github.com/toold/toold/client"
	"github.com/toold/toold/conformance/suite"
	"github.com/toold/toold/message"
)

// TestStressStalledClientCostsLittle has a command print much to a client that
// does not read.
func TestStressStalledClientCostsLittle(t *testing.T) {
	stalledGrowth(t, 1)
}

// TestStressStalledClientsCostLittleEach has several such clients at once. About 2.2 MiB for
// each are usual.
func TestStressStalledClientsCostLittleEach(t *testing.T) {
	stalledGrowth(t, 8)
}

// stalledGrowth is by how much the daemon grows when clients ask for much output and
// read nothing. Their connections go on to serve other calls.
//
// A call keeps some of its output (256 KiB), the buffers that read and write it (240), its return
// (220), and as much garbage. Go's collector lets the heap grow to twice what lives in it, about
// 4 MiB, and how full it is at the beginning is chance.
func stalledGrowth(t *testing.T, clients int) {
	const collector, each = 8 << 20, 3 << 20
	t.Helper()
	mib := amount(t, "TOOLD_STRESS_FLOOD_MIB", 32)
	r := newRig(t, nil)
	other := r.dial(client.Options{})
	// What the daemon needs for calls at all is no matter of clients that stall.
	crowd(clients, 64, func(int) { r.bash(other, "echo hello", "off", client.Events{}) })
	var stalled []*conn
	for range clients {
		c, err := dial(t.Context(), r.daemon, "stalled", 0, r.daemon.tokens["agent"], func(*conn, int, []byte) {}, func() {})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.close)
		c.pause()
		stalled = append(stalled, c)
	}
	resetPeak(r.daemon.pid)
	before := memory(r.daemon.pid, "VmRSS")
	for i, c := range stalled {
		r.request(c, fmt.Sprint("flood", i), fmt.Sprintf("head -c %d /dev/zero | tr '\\0' x; touch printed%d", mib<<20, i))
	}
	for i := range stalled {
		r.awaitFile(fmt.Sprint("printed", i))
	}
	for i := range stalled {
		if size := r.returnedBytes(other, fmt.Sprint("flood", i)); size != int64(mib)<<20 {
			t.Errorf("%d bytes were printed, want %d", size, int64(mib)<<20)
		}
	}
	grown := memory(r.daemon.pid, "VmHWM") - before
	t.Logf("%d MiB of output to each of %d clients that do not read: the daemon grew by %d KiB, %d for each", mib, clients, grown>>10, grown>>10/int64(clients))
	if limit := int64(collector + clients*each); grown > limit {
		t.Errorf("want at most %d KiB", limit>>10)
	}
	for i, c := range stalled {
		r.request(c, fmt.Sprint("beside", i), fmt.Sprint("touch beside", i))
		r.awaitFile(fmt.Sprint("beside", i))
	}
}

// request asks for a call of bash and awaits nothing.
func (r *rig) request(c *conn, id, script string) {
	r.tb.Helper()
	frame := fmt.Sprintf(`{"message_type":"approval_request_message","tool_call":{"tool_call_id":%s,"tool_name":"bash","arguments":{"command":%s,"terminal":"off"}}}`, text(id), text(script))
	if err := c.send(websocket.TextMessage, []byte(frame)); err != nil {
		r.tb.Fatal(err)
	}
}

// awaitFile waits until a command has made a file in the workspace.
func (r *rig) awaitFile(name string) {
	r.tb.Helper()
	if !suite.Poll(patience, func() bool {
		_, err := os.Stat(filepath.Join(r.site.workspace, name))
		return err == nil
	}) {
		r.tb.Fatalf("no command makes %s", name)
	}
}

// returnedBytes waits for the return of a call, by asking for it on another
// connection, and tells how much the call printed.
func (r *rig) returnedBytes(c *client.Client, id string) int64 {
	r.tb.Helper()
	var ret message.ToolReturn
	if !suite.Poll(patience, func() bool {
		page, err := c.ListMessages(r.tb.Context(), message.ListMessages{CallID: id, MessageTypes: []string{"tool_return_message"}})
		if err != nil {
			r.tb.Fatal(err)
		}
		return len(page.Messages) > 0 && json.Unmarshal(page.Messages[0], &ret) == nil
	}) {
		r.tb.Fatalf("%s does not end while its client does not read", id)
	}
	return ret.StdoutBytes
}
