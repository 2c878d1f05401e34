//go:build linux

package conformance

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gorilla/websocket"

	"github.com/toold/toold/client"
	"github.com/toold/toold/message"
)

// TestAClientThatDiesInAFloodGoesOnWhereItWas has a client die while a command prints
// much, and come back on another connection: it gets every byte of the output, and
// the return once.
func TestAClientThatDiesInAFloodGoesOnWhereItWas(t *testing.T) {
	t.Parallel()
	const some, beyond = 200_000, 1_000_000 // lines: less, and more, than is kept for a slow reader
	r := newRig(t, nil)
	for _, c := range []struct {
		name, output string
		lines        int
		ended        bool // the call has ended when the client is back
	}{
		{"output that is still there", "delta", some, false},
		{"output that live frames have left behind", "delta", beyond, false},
		{"binary frames", "binary", some, false},
		{"a call that has ended meanwhile", "delta", some, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			name := fmt.Sprintf("%s-%d-%v", c.output, c.lines, c.ended)
			script := fmt.Sprintf("seq 1 %d; touch %s.printed; until [ -e %s.on ]; do sleep 0.01; done; seq %d %d", c.lines, name, name, c.lines+1, c.lines+100)
			var want strings.Builder
			for i := range c.lines + 100 {
				fmt.Fprintln(&want, i+1)
			}
			k := &resumer{t: t, r: r, call: name, output: c.output, side: r.dial(client.Options{})}
			k.connect(`{}`)
			k.request(script)
			k.readUntil(func() bool { return len(k.text) > 100_000 })
			conn, seq := k.conn, k.seq
			k.ws.NetConn().Close() // with much on its way
			r.awaitFile(name + ".printed")
			goOn := func() {
				if err := os.WriteFile(filepath.Join(r.site.workspace, name+".on"), nil, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if c.ended {
				goOn()
				r.returnedBytes(k.side, name)
			}
			if ack := k.connect(fmt.Sprintf(`{"conn_id":%q,"last_event_seq":%d}`, conn, seq)); ack.Resumed == nil || !*ack.Resumed {
				t.Fatalf("greeted with %+v", ack)
			}
			if !c.ended {
				goOn()
			}
			k.readUntil(func() bool { return len(k.returns) > 0 })
			k.fill(k.returns[0].StdoutBytes)
			if string(k.text) != want.String() {
				t.Errorf("%d bytes came together, want %d; %.100q … %.100q", len(k.text), want.Len(), k.text, k.text[max(0, len(k.text)-100):])
			}
			k.send(`{"message_type":"ping","nonce":"last"}`)
			k.readUntil(func() bool { return k.pong })
			if len(k.returns) != 1 || k.returns[0].Status != "success" || k.returns[0].Replayed != c.ended {
				t.Errorf("returns: %+v", k.returns)
			}
		})
	}
}

// resumer is a client that puts the output of one call together over several
// connections.
type resumer struct {
	t            *testing.T
	r            *rig
	call, output string
	side         *client.Client // fetches what live frames leave out

	ws      *websocket.Conn
	conn    string // its name
	seq     int64  // of the last delta
	text    []byte // of stdout, without a hole
	returns []message.ToolReturn
	pong    bool
}

// connect begins a connection that goes on where another ended.
func (k *resumer) connect(resume string) (ack message.HelloAck) {
	k.t.Helper()
	var err error
	k.ws, _, err = websocket.DefaultDialer.DialContext(k.t.Context(), k.r.daemon.ws, http.Header{"Authorization": {"Bearer " + k.r.daemon.tokens["agent"]}})
	if err != nil {
		k.t.Fatal(err)
	}
	ws := k.ws
	k.t.Cleanup(func() { ws.Close() })
	hello := fmt.Sprintf(`{"message_type":"hello","protocol":1,"output":%q,"resume":%s}`, k.output, resume)
	k.send(strings.Replace(hello, `,"resume":{}`, "", 1))
	_, frame, err := k.ws.ReadMessage()
	if err == nil {
		err = json.Unmarshal(frame, &ack)
	}
	if err != nil || ack.ConnID == "" {
		k.t.Fatalf("%v in %s", err, frame)
	}
	k.conn = ack.ConnID
	return ack
}

func (k *resumer) send(frame string) {
	k.t.Helper()
	if err := k.ws.WriteMessage(websocket.TextMessage, []byte(frame)); err != nil {
		k.t.Fatal(err)
	}
}

func (k *resumer) request(script string) {
	k.t.Helper()
	k.send(fmt.Sprintf(`{"message_type":"approval_request_message","tool_call":{"tool_call_id":%q,"tool_name":"bash","arguments":{"command":%s,"terminal":"off"}}}`, k.call, text(script)))
}

// readUntil reads frames until done says so.
func (k *resumer) readUntil(done func() bool) {
	k.t.Helper()
	for !done() {
		kind, frame, err := k.ws.ReadMessage()
		if err != nil {
			k.t.Fatal(err)
		}
		if kind == websocket.BinaryMessage {
			var d message.OutputDelta
			_, data, err := d.ParseBinary(frame)
			if err != nil {
				k.t.Fatal(err)
			}
			k.take(d.Offset, string(data))
			continue
		}
		k.understand(frame)
	}
}

func (k *resumer) understand(frame []byte) {
	k.t.Helper()
	var f struct {
		Type     string `json:"message_type"`
		Offset   int64  `json:"offset"`
		Data     string `json:"data"`
		EventSeq int64  `json:"event_seq"`
	}
	if err := json.Unmarshal(frame, &f); err != nil {
		k.t.Fatal(err)
	}
	switch f.Type {
	case "tool_output_delta":
		k.seq = f.EventSeq
		k.take(f.Offset, f.Data)
	case "tool_return_message":
		ret, err := message.Record(frame).Return()
		if err != nil {
			k.t.Fatal(err)
		}
		k.returns = append(k.returns, ret)
	case "pong":
		k.pong = true
	}
}

// take adds a piece of output. What it has already may come again; what lies between
// is fetched.
func (k *resumer) take(offset int64, data string) {
	k.t.Helper()
	k.fill(offset)
	if known := int64(len(k.text)) - offset; known < int64(len(data)) {
		k.text = append(k.text, data[known:]...)
	}
}

// fill fetches the output up to an offset.
func (k *resumer) fill(to int64) {
	k.t.Helper()
	for have := int64(len(k.text)); have < to; have = int64(len(k.text)) {
		_, p, err := k.side.GetOutput(k.t.Context(), message.GetOutput{CallID: k.call, Stream: "stdout", Offset: have, Limit: to - have})
		if err != nil || len(p) == 0 {
			k.t.Fatalf("cannot fetch from %d to %d: %v", have, to, err)
		}
		k.text = append(k.text, p...)
	}
}
