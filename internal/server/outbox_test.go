package server

import (
	"bytes"
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"

	"github.com/toold/toold/internal/dispatch"
	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/message"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/tools"
)

// sendUntilRefused sends frames without reading the answers until the server
// reads no further.
func sendUntilRefused(t *testing.T, conn *websocket.Conn, frame string) {
	t.Helper()
	for range 1 << 20 {
		conn.SetWriteDeadline(time.Now().Add(time.Second))
		err := conn.WriteMessage(websocket.TextMessage, []byte(frame))
		if timeout := net.Error(nil); errors.As(err, &timeout) && timeout.Timeout() {
			return
		}
		must.Do(t, err)
	}
	t.Fatal("the server reads on though none of its answers is read")
}

func TestAClientThatReadsNoAnswersHoldsUpNothingWhenItLeaves(t *testing.T) {
	t.Parallel()
	s, ts := newTestServer(t, func(o *Options) {
		o.Greet = func(string) (message.HelloAck, error) {
			return message.HelloAck{Workspace: strings.Repeat("w", 64<<10)}, nil
		}
		o.Idle = time.Hour // on a slow machine the filling takes longer than the usual
	})
	conn := dial(t, ts)
	sendUntilRefused(t, conn, `{"message_type":"hello","protocol":1}`)
	conn.Close()
	must.Do(t, s.Shutdown(t.Context()))
}

func TestAClientThatReadsNothingDoesNotMakeShutdownFail(t *testing.T) {
	t.Parallel()
	s, ts := newTestServer(t, func(o *Options) {
		o.Greet = func(string) (message.HelloAck, error) {
			return message.HelloAck{Workspace: strings.Repeat("w", 64<<10)}, nil
		}
		o.Idle = time.Hour
	})
	conn := dial(t, ts)
	sendUntilRefused(t, conn, `{"message_type":"hello","protocol":1}`)
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // the time to wait for clients is over
	if err := s.Shutdown(ctx); err != nil {
		t.Errorf("the server did not end well: %v", err)
	}
}

func TestUnreadRepliesAreBoundedInBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOutbox(func() {})
		o.reply(make([]byte, maxReplyBytes)) // one may be large
		waited := make(chan struct{})
		// Ends when the first reply is taken.
		go func() { o.reply([]byte("second")); close(waited) }()
		synctest.Wait()
		select {
		case <-waited:
			t.Error("a reply was added to a full outbox")
		default:
		}
		if v, _, _ := o.take(); len(v.([]byte)) != maxReplyBytes {
			t.Errorf("took %d bytes first", len(v.([]byte)))
		}
		<-waited
		if v, ok, _ := o.take(); !ok || string(v.([]byte)) != "second" {
			t.Errorf("took %v, %v; want the second reply", v, ok)
		}
	})
}

func TestAClosedOutboxKeepsNoReplies(t *testing.T) {
	t.Parallel()
	o := newOutbox(func() {})
	o.close()
	for range 2 * maxReplies {
		o.reply([]byte("too late"))
	}
	if len(o.queue) != 0 {
		t.Errorf("a closed outbox holds %d replies", len(o.queue))
	}
}

// Returns wait in memory for a client that reads none.
func TestAClientThatReadsNoReturnsIsNotReadForever(t *testing.T) {
	must.Long(t)
	t.Parallel()
	ts := newLimitedServer(t, policy.Allow, untilCancelled, func(*dispatch.Limits, *Options) {}, func(o *Options) { o.Idle = time.Hour })
	conn := dialAs(t, ts, agentSecret)
	id := strings.Repeat("x", 256)
	write(t, conn, call(id))
	other := strings.Replace(call(id), `{}`, `{"other":"`+strings.Repeat("y", 16<<10)+`"}`, 1)
	for range 1 << 14 {
		conn.SetWriteDeadline(time.Now().Add(time.Second))
		err := conn.WriteMessage(websocket.TextMessage, []byte(other))
		if timeout := net.Error(nil); errors.As(err, &timeout) && timeout.Timeout() {
			return
		}
		must.Do(t, err)
	}
	t.Error("the server reads on though none of its answers is read")
}

// Of the commands of a shell_call none is answered before the last one ends: what the ended ones
// keep in memory does not count as unread.
func TestALongShellCallCanBeCancelled(t *testing.T) {
	must.Long(t)
	t.Parallel()
	const ended = 95 // commands with much output, before one that waits
	much := bytes.Repeat([]byte("x\n"), 100<<10)
	var begun atomic.Int32
	ts := newCallServer(t, policy.Allow, func(ctx context.Context, io tools.IO) tools.Result {
		if begun.Add(1) < ended {
			io.Output(tools.Stdout, much)
			io.Output(tools.Stderr, much)
			io.Started(tools.Started{})
			return tools.Result{}
		}
		io.Output(tools.Stdout, []byte("here"))
		io.Started(tools.Started{})
		<-ctx.Done()
		return tools.Result{IsError: true, Failure: tools.Cancelled}
	})
	conn := dialAs(t, ts, agentSecret)
	write(t, conn, `{"message_type":"hello","protocol":1,"output":"none","client":{"name":"x"}}`)
	write(t, conn, `{"type":"shell_call","call_id":"sh_1","action":{"commands":["one"`+strings.Repeat(`,"one"`, ended)+`]}}`)
	for begun.Load() < ended {
		read(t, conn)
	}
	write(t, conn, call("other"))
	write(t, conn, `{"message_type":"cancel","tool_call_id":"sh_1"}`)
	for !strings.Contains(read(t, conn), "shell_call_output") {
	}
}
