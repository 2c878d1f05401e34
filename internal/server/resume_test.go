package server

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/gorilla/websocket"

	"github.com/toold/toold/internal/dispatch"
	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/message"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/tools"
)

// echoing prints ten bytes, then every input it gets, until that is "end".
func echoing(ctx context.Context, io tools.IO) tools.Result {
	io.Started(tools.Started{})
	io.Output(tools.Stdout, []byte("0123456789"))
	for {
		select {
		case in := <-io.Input:
			if string(in.Data) == "end" {
				return tools.Result{}
			}
			io.Output(tools.Stdout, in.Data)
		case <-ctx.Done():
			return tools.Result{IsError: true, Failure: tools.Cancelled}
		}
	}
}

// greeted is the connection's greeting.
func greeted(t *testing.T, conn *websocket.Conn, hello string) (ack message.HelloAck) {
	t.Helper()
	write(t, conn, hello)
	frame, _ := until(t, conn, "hello_ack")
	must.Do(t, json.Unmarshal([]byte(frame), &ack))
	return ack
}

const greeting = `{"message_type":"hello","protocol":1}`

// resuming is the greeting of a client that comes back.
func resuming(conn string, seq int64) string {
	return fmt.Sprintf(`{"message_type":"hello","protocol":1,"resume":{"conn_id":%q,"last_event_seq":%d}}`, conn, seq)
}

// delta reads the next piece of output.
func delta(t *testing.T, conn *websocket.Conn) (d message.OutputDelta, text string) {
	t.Helper()
	frame, _ := until(t, conn, "tool_output_delta")
	var data struct{ Data string }
	must.Do(t, json.Unmarshal([]byte(frame), &d))
	must.Do(t, json.Unmarshal([]byte(frame), &data))
	return d, data.Data
}

func input(t *testing.T, conn *websocket.Conn, text string) {
	t.Helper()
	write(t, conn, fmt.Sprintf(`{"message_type":"tool_input","tool_call_id":"c","data":%q}`, text))
}

func TestAResumedConnectionGoesOnInTheMiddleOfTheOutput(t *testing.T) {
	t.Parallel()
	for name, gone := range map[string]bool{"after a goodbye": true, "while the old one is thought alive": false} {
		t.Run(name, func(t *testing.T) {
			ts := newCallServer(t, policy.Allow, echoing)
			first := dialAs(t, ts, agentSecret)
			id := greeted(t, first, greeting).ConnID
			write(t, first, call("c"))
			seen, _ := delta(t, first)
			input(t, first, "lost")
			delta(t, first) // comes, but the client does not remember it
			if gone {
				goodbyeTo(t, first)
			}
			second := dialAs(t, ts, agentSecret)
			if ack := greeted(t, second, resuming(id, seen.EventSeq)); ack.Resumed == nil || !*ack.Resumed {
				t.Fatalf("greeted with %+v", ack)
			}
			if d, text := delta(t, second); d.Offset != 10 || text != "lost" {
				t.Errorf("goes on with %q at %d", text, d.Offset)
			}
			input(t, second, "end")
			until(t, second, "tool_return_message")
		})
	}
}

func TestAResumedConnectionGetsTheReturnsThatItsClientMayHaveMissed(t *testing.T) {
	t.Parallel()
	ts := newCallServer(t, policy.Allow, echoing)
	first := dialAs(t, ts, agentSecret)
	greeted(t, first, greeting)
	write(t, first, call("c"))
	seen, _ := delta(t, first)
	input(t, first, "end")
	until(t, first, "tool_return_message") // lost on the way
	goodbyeTo(t, first)
	second := dialAs(t, ts, agentSecret)
	if ack := greeted(t, second, resuming("", seen.EventSeq)); ack.Resumed == nil || !*ack.Resumed {
		t.Fatalf("greeted with %+v", ack)
	}
	ret, before := until(t, second, "tool_return_message")
	none(t, before, "tool_output_delta")
	if !strings.Contains(ret, `"replayed":true`) || !strings.Contains(ret, `"tool_call_id":"c"`) {
		t.Errorf("got %s", ret)
	}
}

func TestABackgroundCallGoesOnOnAResumedConnection(t *testing.T) {
	t.Parallel()
	ts := newCallServer(t, policy.Allow, echoing)
	first := dialAs(t, ts, agentSecret)
	id := greeted(t, first, greeting).ConnID
	write(t, first, backgroundCall("c"))
	handle, _ := handleOf(t, first)
	seen, _ := delta(t, first)
	feed := func(conn *websocket.Conn, text string) {
		write(t, conn, fmt.Sprintf(`{"message_type":"tool_input","tool_call_id":%q,"data":%q}`, handle, text))
	}
	goodbyeTo(t, first)
	second := dialAs(t, ts, agentSecret)
	id = greeted(t, second, resuming(id, seen.EventSeq)).ConnID
	feed(second, "more")
	d, text := delta(t, second)
	if d.Offset != 10 || text != "more" {
		t.Errorf("goes on with %q at %d", text, d.Offset)
	}
	goodbyeTo(t, second)
	person := dialAs(t, ts, approverSecret)
	feed(person, "end")
	for list := "running"; strings.Contains(list, "running"); {
		write(t, person, `{"message_type":"list_calls","request_id":"q1"}`)
		list, _ = until(t, person, `"calls"`)
	}
	third := dialAs(t, ts, agentSecret)
	write(t, third, resuming(id, d.EventSeq), `{"message_type":"ping","nonce":"first"}`)
	_, frames := until(t, third, `"first"`)
	write(t, third, `{"message_type":"ping","nonce":"last"}`) // each turn of the writer tells what there is
	_, more := until(t, third, `"last"`)
	if n := strings.Count(strings.Join(append(frames, more...), "\n"), `"background_ended"`); n != 1 {
		t.Errorf("the end was told %d times", n)
	}
}

func TestWhatIsNotKnownCannotBeResumed(t *testing.T) {
	t.Parallel()
	s, ts := newTestServer(t, nil)
	conn := dialAs(t, ts, agentSecret)
	id := greeted(t, conn, greeting).ConnID
	for _, other := range []string{"conn-unknown", id} { // nobody goes on in its own place
		if ack := greeted(t, conn, resuming(other, 7)); ack.Resumed == nil || *ack.Resumed {
			t.Errorf("greeted with %+v", ack)
		}
	}
	if ack := greeted(t, conn, greeting); ack.Resumed != nil {
		t.Errorf("greeted with %+v", ack)
	}
	s.park(resumeState{conn: "theirs", client: "somebody else", until: time.Now().Add(time.Hour)})
	s.park(resumeState{conn: "old", client: "agent", until: time.Now()})
	for _, name := range []string{"theirs", "old", ""} {
		if _, ok := s.unpark("agent", name); ok {
			t.Errorf("%q was handed out", name)
		}
	}
}

func TestAConnectionGoesOnOnlyWhenTheEarlierOneHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		live := func(id string) *session {
			return &session{id: id, token: Token{Name: "agent"}, over: make(chan struct{})}
		}
		old, inUse, next := live("old"), live("in use"), live("next")
		old.leaving.Store(true)
		s := &Server{opt: Options{Idle: time.Minute}, sessions: map[*session]struct{}{old: {}, inUse: {}, next: {}}}
		waited := make(chan struct{})
		go func() { s.hangUp("agent", "", next); close(waited) }() // ends when old is over
		synctest.Wait()
		select {
		case <-waited:
			t.Error("did not wait")
		default:
		}
		start := time.Now()
		close(old.over)
		<-waited
		if d := time.Since(start); d != 0 {
			t.Errorf("waited %v for a connection that is in use", d)
		}
	})
}

// Two programs may each ask for the place of the other's connection.
func TestTwoConnectionsDoNotWaitForEachOther(t *testing.T) {
	t.Parallel()
	_, ts := newTestServer(t, nil)
	conns := []*websocket.Conn{dial(t, ts), dial(t, ts)}
	synctest.Test(t, func(t *testing.T) {
		live := func(id string, conn *websocket.Conn) *session {
			return &session{id: id, token: Token{Name: "agent"}, conn: conn, over: make(chan struct{}), hungUp: make(chan struct{}, 1)}
		}
		a, b := live("a", conns[0]), live("b", conns[1])
		s := &Server{opt: Options{Idle: time.Hour}, sessions: map[*session]struct{}{a: {}, b: {}}}
		start := time.Now()
		var both sync.WaitGroup
		both.Go(func() { s.hangUp("agent", "b", a); close(a.over) }) // ends when it is hung up on itself
		both.Go(func() { s.hangUp("agent", "a", b); close(b.over) })
		both.Wait()
		if d := time.Since(start); d != 0 {
			t.Errorf("they waited %v", d)
		}
	})
}

func TestATrailGoesBackToWhatTheClientHas(t *testing.T) {
	t.Parallel()
	key := func(id string) dispatch.Key { return dispatch.Key{ID: id} }
	left := resumeState{calls: []position{{call: key("a"), offsets: [2]int64{30, 7}}, {call: key("b"), offsets: [2]int64{5, 0}}}, history: history{
		pieces: []piece{
			{seq: 4, call: key("a"), from: 10},
			{seq: 5, call: key("a"), from: 20},
			{seq: 6, call: key("a"), stream: tools.Stderr, from: 3},
			{seq: 7, call: key("y"), from: 1},
			{seq: noSeq, call: key("b"), from: 2},
		},
		ends: []ending{{seq: 4, call: key("x")}, {seq: 6, call: key("y")}},
	}}
	a := func(out, err int64) position { return position{call: key("a"), offsets: [2]int64{out, err}} }
	b := position{call: key("b"), offsets: [2]int64{2, 0}}
	for seq, want := range map[int64][]position{
		7: {a(30, 7), b},
		6: {a(30, 7), b, {call: key("y")}},
		4: {a(20, 3), b, {call: key("y")}, {call: key("x")}},
		0: {a(10, 3), b, {call: key("y")}, {call: key("x")}},
	} {
		if diff := cmp.Diff(want, left.after(seq), cmp.AllowUnexported(position{})); diff != "" {
			t.Errorf("after %d: %s", seq, diff)
		}
	}
	left.cut = true
	if got := left.after(2)[0]; got != a(0, 0) {
		t.Errorf("of a long history: %+v", got)
	}
	if got := left.after(5)[0]; got != a(30, 3) {
		t.Errorf("of the end of a long history: %+v", got)
	}
}

func TestAHistoryIsBoundedAndKnowsWhatItForgot(t *testing.T) {
	t.Parallel()
	var left resumeState
	for i := range int64(3 * maxEnds) {
		left.wrote(piece{seq: i})
		left.ended(ending{seq: i, at: time.Now()})
	}
	if n := len(left.pieces); n > maxPieces || !left.cut || left.pieces[n-1].seq != 3*maxEnds-1 {
		t.Errorf("%d pieces, the last %+v", n, left.pieces[n-1])
	}
	if n := len(left.ends); n > maxEnds || left.ends[n-1].seq != 3*maxEnds-1 {
		t.Errorf("%d ends, the last %+v", n, left.ends[n-1])
	}
	if oldest := left.ends[0].seq; left.knows(oldest-1) || !left.knows(oldest) {
		t.Errorf("the oldest end comes after piece %d, and it knows %v, before that %v", oldest, left.knows(oldest), left.knows(oldest-1))
	}
}

// TestManyPiecesMakeNoEndForgotten has a client that reads slowly: much output of
// one call follows the end of another.
func TestManyPiecesMakeNoEndForgotten(t *testing.T) {
	t.Parallel()
	var left resumeState
	short, long := dispatch.Key{ID: "short"}, dispatch.Key{ID: "long"}
	left.wrote(piece{seq: 1, call: short})
	left.ended(ending{seq: 1, call: short, at: time.Now()})
	for seq := range int64(2 * maxPieces) {
		left.wrote(piece{seq: seq + 2, call: long, from: seq})
	}
	if got := left.after(0); !left.knows(0) || len(got) != 1 || got[0].call != short {
		t.Errorf("told again are %+v", got)
	}
}
