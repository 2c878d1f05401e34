package server

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/gorilla/websocket"

	"github.com/toold/toold/internal/dispatch"
	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/message"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/tools"
)

// subscribe subscribes, with more members of the frame, and returns where it begins.
func subscribe(t *testing.T, conn *websocket.Conn, more string) int64 {
	t.Helper()
	write(t, conn, `{"message_type":"subscribe","request_id":"sub"`+more+`}`)
	frame, _ := until(t, conn, `"subscribed"`)
	var s struct {
		After     int64
		RequestID string `json:"request_id"`
	}
	if err := json.Unmarshal([]byte(frame), &s); err != nil || s.RequestID != "sub" {
		t.Fatalf("got %s (%v)", frame, err)
	}
	return s.After
}

// nextEvent returns the next event, and what gap came before it.
func nextEvent(t *testing.T, conn *websocket.Conn) (e message.SubscriptionEvent, gap *message.SubscriptionGap) {
	t.Helper()
	for {
		frame := []byte(read(t, conn))
		must.Do(t, json.Unmarshal(frame, &e))
		switch e.MessageType {
		case "subscription_event":
			return e, gap
		case "subscription_gap":
			gap = &message.SubscriptionGap{}
			must.Do(t, json.Unmarshal(frame, gap))
		}
	}
}

// eventsUntil returns the events up to the return of a call.
func eventsUntil(t *testing.T, conn *websocket.Conn, callID string) (events []message.SubscriptionEvent) {
	t.Helper()
	for {
		e, _ := nextEvent(t, conn)
		events = append(events, e)
		if e.Topic == message.TopicReturn && strings.Contains(string(e.Event), `"tool_call_id":"`+callID+`"`) {
			return events
		}
	}
}

func topicsOf(events []message.SubscriptionEvent) string {
	var list []string
	for _, e := range events {
		list = append(list, string(e.Topic))
	}
	return strings.Join(list, " ")
}

func TestASubscriberSeesACallFromItsRequestToItsReturn(t *testing.T) {
	t.Parallel()
	ts := newCallServer(t, policy.Ask, func(_ context.Context, io tools.IO) tools.Result {
		io.Started(tools.Started{PID: 1})
		io.Output(tools.Stdout, []byte("password? "))
		io.Waiting(tools.Waiting{Waits: true, Kind: "line"})
		io.Output(tools.Stderr, []byte("\xff\n"))
		return tools.Result{}
	})
	agent, approver := dialAs(t, ts, agentSecret), dialAs(t, ts, approverSecret)
	subscribe(t, approver, `,"output":true`)
	write(t, agent, call("call_1"))
	until(t, approver, `"question"`)
	write(t, approver, `{"message_type":"approval_response_message","approvals":[{"tool_call_id":"call_1","approve":true}]}`)
	events := eventsUntil(t, approver, "call_1")
	got := topicsOf(slices.DeleteFunc(slices.Clone(events), func(e message.SubscriptionEvent) bool {
		return e.Topic == message.TopicWaiting || e.Topic == message.TopicRecord
	}))
	if got != "answer started output output return" {
		t.Errorf("after the question came %s", topicsOf(events))
	}
	last := int64(0)
	for _, e := range events {
		if e.Client != "agent" || e.RequestID != "sub" || e.Seq > 0 && e.Seq <= last {
			t.Errorf("an event is %+v", e)
		}
		last = max(last, e.Seq)
	}
	if ret := events[len(events)-1]; !strings.Contains(string(ret.Event), `"tool_returns":[{`) || ret.Seq == 0 {
		t.Errorf("the return is %s", ret.Event)
	}
	// Once more, all of it from the journal.
	write(t, approver, `{"message_type":"unsubscribe","request_id":"un"}`)
	until(t, approver, `"unsubscribed","request_id":"un"`)
	subscribe(t, approver, `,"after":0,"output":true`)
	if got := topicsOf(eventsUntil(t, approver, "call_1")); !strings.HasPrefix(got, "request ") || strings.ReplaceAll(got, " record", "") != "request return" {
		t.Errorf("the journal has %s", got)
	}
}

func TestFiltersChooseWhatASubscriberSees(t *testing.T) {
	t.Parallel()
	ts := newCallServer(t, policy.Allow, hello)
	agent, observer := dialAs(t, ts, agentSecret), dialAs(t, ts, approverSecret)
	request := func(id, agentID, conversation string) string {
		return fmt.Sprintf(`{"message_type":"approval_request_message","agent_id":%q,"conversation_id":%q,"tool_call":{"tool_call_id":%q,"tool_name":"shout","arguments":{}}}`, agentID, conversation, id)
	}
	for round, c := range []struct{ filter, want string }{
		{`"agent_id":"y"`, "request decision started return"},
		{`"conversation_id":"1"`, "request decision started return"},
		{`"tool_call_id":"b2","output":true`, "request decision started output return"},
		{`"topics":["return","started"],"agent_id":"x"`, "started return"},
		{`"topics":["output"],"agent_id":"x"`, "output"},
		{`"client":"agent","tool_name":"shout","topics":["decision"]`, "decision decision decision"},
		{`"client":"somebody"`, ""},
		{`"tool_name":"whisper"`, ""},
	} {
		all := dialAs(t, ts, approverSecret)
		subscribe(t, all, "")
		subscribe(t, observer, ","+c.filter)
		end := fmt.Sprint("end", round)
		write(t, agent, request(fmt.Sprint("a", round), "x", "1"))
		until(t, agent, "tool_return_message")
		write(t, agent, request(fmt.Sprint("b", round), "y", "2"))
		until(t, agent, "tool_return_message")
		write(t, agent, request(end, "z", "3"))
		until(t, agent, "tool_return_message")
		eventsUntil(t, all, end) // now it is known
		all.Close()
		// What there is to write is written between the answers to two pings.
		write(t, observer, `{"message_type":"ping","nonce":"first"}`)
		_, before := until(t, observer, `"first"`)
		write(t, observer, `{"message_type":"ping","nonce":"second"}`)
		_, between := until(t, observer, `"second"`)
		write(t, observer, `{"message_type":"unsubscribe","request_id":"un"}`)
		_, rest := until(t, observer, `"unsubscribed"`)
		var events []message.SubscriptionEvent
		for _, frame := range slices.Concat(before, between, rest) {
			var e message.SubscriptionEvent
			must.Do(t, json.Unmarshal([]byte(frame), &e))
			events = append(events, e)
		}
		if got := topicsOf(events); got != c.want {
			t.Errorf("%s: got %q, want %q", c.filter, got, c.want)
		}
	}
}

// TestReplayGoesOnLiveWithoutGapOrDuplicate subscribes while calls are made.
func TestReplayGoesOnLiveWithoutGapOrDuplicate(t *testing.T) {
	ts := newCallServer(t, policy.Allow, hello)
	agent := dialAs(t, ts, agentSecret)
	const calls = 300
	halfway := make(chan struct{})
	var making sync.WaitGroup
	// Ends when all calls are answered.
	making.Go(func() {
		for i := range calls {
			if i == calls/3 {
				close(halfway)
			}
			agent.WriteMessage(websocket.TextMessage, []byte(call(fmt.Sprint("call_", i))))
			for {
				_, frame, err := agent.ReadMessage()
				if err != nil {
					t.Error(err)
					return
				}
				if strings.Contains(string(frame), "tool_return_message") {
					break
				}
			}
		}
	})
	<-halfway
	for _, after := range []int64{0, 57, 150} {
		observer := dialAs(t, ts, approverSecret)
		if at := subscribe(t, observer, fmt.Sprintf(`,"after":%d`, after)); at != after {
			t.Errorf("it begins after %d, not %d", at, after)
		}
		seq := after
		for _, e := range eventsUntil(t, observer, fmt.Sprint("call_", calls-1)) {
			if e.Seq == 0 {
				continue
			}
			if seq++; e.Seq != seq {
				t.Fatalf("after %d: message %d came in the place of %d", after, e.Seq, seq)
			}
		}
		if seq < 2*calls {
			t.Errorf("after %d: the last message was %d", after, seq)
		}
	}
	making.Wait()
}

// Who subscribes while calls run, and who comes back, sees no output of a call before its request.
func TestOutputComesBehindTheRequest(t *testing.T) {
	t.Parallel()
	ts := newCallServer(t, policy.Allow, func(ctx context.Context, io tools.IO) tools.Result {
		io.Started(tools.Started{})
		for ctx.Err() == nil {
			io.Output(tools.Stdout, []byte("a line\n"))
			runtime.Gosched()
		}
		return tools.Result{}
	})
	agent, observer := dialAs(t, ts, agentSecret), dialAs(t, ts, approverSecret)
	write(t, agent, `{"message_type":"hello","output":"none"}`)
	for i, begin := range []string{`,"after":0`, "", `,"after":1`, "", `,"after":2`, ""} {
		id := fmt.Sprint("call_", i)
		write(t, agent, call(id))
		if begin != "" {
			until(t, agent, `"tool_started"`)
		}
		subscribe(t, observer, `,"output":true`+begin)
		seen := ""
		for !strings.Contains(seen, "output "+id) {
			e, _ := nextEvent(t, observer)
			var about struct {
				CallID   string `json:"tool_call_id"`
				ToolCall struct {
					CallID string `json:"tool_call_id"`
				} `json:"tool_call"`
			}
			must.Do(t, json.Unmarshal(e.Event, &about))
			seen += fmt.Sprintln(e.Topic, about.CallID+about.ToolCall.CallID)
		}
		if begin != "" && !strings.Contains(seen, "request "+id+"\n") {
			t.Errorf("%s: got\n%s", begin, seen)
		}
		write(t, agent, `{"message_type":"cancel","tool_call_id":"`+id+`"}`)
		until(t, agent, `"tool_return_message"`)
		for _, e := range eventsUntil(t, observer, id) {
			if e.Topic == message.TopicRequest || e.Topic == message.TopicStarted {
				t.Errorf("%s: %s of %s came behind its output", begin, e.Topic, id)
			}
		}
		write(t, observer, `{"message_type":"unsubscribe","request_id":"un"}`)
		until(t, observer, `"unsubscribed"`)
	}
}

// TestAStalledSubscriberCostsLittleAndMissesNoReturn makes calls while subscribers do not read.
func TestAStalledSubscriberCostsLittleAndMissesNoReturn(t *testing.T) {
	must.Long(t)
	const calls, stalled = 1000, 4
	noise := []byte(strings.Repeat("x", 40<<10))
	ts := newLimitedServer(t, policy.Allow, func(_ context.Context, io tools.IO) tools.Result {
		io.Started(tools.Started{})
		io.Output(tools.Stdout, noise)
		return tools.Result{}
	}, func(*dispatch.Limits, *Options) {})
	agent := dialAs(t, ts, agentSecret)
	write(t, agent, `{"message_type":"hello","output":"none"}`)
	var observers []*websocket.Conn
	for range stalled {
		observer := dialAs(t, ts, approverSecret)
		subscribe(t, observer, `,"output":true`)
		observers = append(observers, observer)
	}
	before, goroutines := heap(), runtime.NumGoroutine()
	for i := range calls {
		write(t, agent, call(fmt.Sprint("call_", i)))
		until(t, agent, "tool_return_message")
	}
	grown := (heap() - before) >> 20
	t.Logf("%d subscribers that do not read cost %d MiB and %d goroutines", stalled, grown, runtime.NumGoroutine()-goroutines)
	if grown > 48 {
		t.Errorf("that is more than 48 MiB")
	}
	if more := runtime.NumGoroutine() - goroutines; more > 10 {
		t.Errorf("%d goroutines were started", more)
	}
	returns, gaps, seq := 0, int64(0), int64(0)
	for returns < calls {
		e, gap := nextEvent(t, observers[0])
		if gap != nil {
			gaps += gap.Skipped
			if gap.After != seq {
				t.Errorf("the gap is after %d; the last message was %d", gap.After, seq)
			}
		}
		if e.Seq > 0 {
			if seq++; e.Seq != seq {
				t.Fatalf("message %d came in the place of %d", e.Seq, seq)
			}
		}
		if e.Topic == message.TopicReturn {
			returns++
		}
	}
	t.Logf("%d events were skipped", gaps)
	write(t, agent, call("later"))
	if got := topicsOf(eventsUntil(t, observers[0], "later")); !strings.Contains(got, "request decision started output") {
		t.Errorf("after it has caught up it gets %s", got)
	}
}

// TestASlowSubscriberIsToldWhatOutputItMissed lets a running call print more than is kept for
// a slow reader.
func TestASlowSubscriberIsToldWhatOutputItMissed(t *testing.T) {
	must.Long(t)
	t.Parallel()
	printed, end := make(chan struct{}), make(chan struct{})
	ts := newCallServer(t, policy.Allow, func(_ context.Context, io tools.IO) tools.Result {
		io.Started(tools.Started{})
		flooding(io)
		close(printed)
		<-end
		io.Output(tools.Stdout, []byte("last"))
		return tools.Result{}
	})
	agent, observer := dialAs(t, ts, agentSecret), dialAs(t, ts, approverSecret)
	write(t, agent, `{"message_type":"hello","output":"none"}`)
	subscribe(t, observer, `,"output":true`)
	write(t, agent, call("call_1"))
	<-printed
	close(end)
	at, lost := int64(0), int64(0)
	for _, e := range eventsUntil(t, observer, "call_1") {
		if e.Topic != message.TopicOutput {
			continue
		}
		var d message.OutputDelta
		must.Do(t, json.Unmarshal(e.Event, &d))
		if d.Gap != nil {
			if d.Gap.From != at || d.Gap.To != d.Offset {
				t.Errorf("at %d the gap is %+v of %d", at, *d.Gap, d.Offset)
			}
			lost += d.Gap.To - d.Gap.From
			at = d.Gap.To
		}
		if d.Offset != at {
			t.Fatalf("offset %d came in the place of %d", d.Offset, at)
		}
		at += int64(len(d.Data))
	}
	if total := int64(flood + 4); at != total || lost == 0 {
		t.Errorf("%d bytes of %d came, %d were lost", at, total, lost)
	}
}

// A subscriber is no reason for a call to live on, nor an approver.
func TestASubscriberKeepsNothingAlive(t *testing.T) {
	t.Parallel()
	ts := newLimitedServer(t, policy.Ask, hello, func(l *dispatch.Limits, _ *Options) { l.Linger = 1 }, func(o *Options) {
		o.Tokens = also(o.Tokens, Token{Name: "observer", Secret: observerSecret, Roles: []Role{Observer}})
	})
	agent, observer := dialAs(t, ts, agentSecret), dialAs(t, ts, observerSecret)
	subscribe(t, observer, "")
	if ret := made(t, agent, "call_1"); !strings.Contains(ret, "no approver is connected") {
		t.Errorf("got %s", ret)
	}
}
