package letta

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/toold/toold/internal/strict"
	"github.com/toold/toold/message"
)

type run struct {
	*follower
	id      string
	seq     int64           // of the latest message; 0: messages have no numbers
	decoder message.Decoder // joins fragments of calls
	calls   gathered
	stopped bool // a stop_reason was received
	act     bool // the model waits for the calls
	over    bool // no more messages will arrive
}

// Limits of the calls of one step: how many are answered, and the bytes of their arguments. maxCalls of them run.
const (
	maxGathered      = 4096
	maxGatheredBytes = 64 << 20
)

type gathered struct {
	calls []message.ToolCall
	bytes int // of their arguments
}

// add adds the calls in a message. It ignores calls without an id, because they cannot be answered.
func (g *gathered) add(frame []byte, d *message.Decoder) {
	in, _ := d.Decode(frame)
	for _, one := range in {
		if request, ok := one.(*message.Request); ok {
			for _, c := range request.Calls {
				g.put(c)
			}
		}
	}
}

func (g *gathered) put(c message.ToolCall) {
	for i, was := range g.calls {
		if was.ID != c.ID {
			continue
		}
		if was.Name != c.Name || !bytes.Equal(was.Arguments, c.Arguments) {
			g.calls[i].Invalid = "the server sent two different calls with this tool_call_id"
		}
		return
	}
	switch {
	case len(g.calls) == maxGathered:
		return // such a step cannot be answered
	case len(g.calls) >= maxCalls:
		c.Arguments = nil
	case g.bytes+len(c.Arguments) > maxGatheredBytes:
		c.Arguments, c.Invalid = nil, "the calls of this step are too large together"
	}
	g.bytes += len(c.Arguments)
	g.calls = append(g.calls, c)
}

// resume requests the rest of the stream or, without a run id, the stream of the active run.
func (r *run) resume(ctx context.Context) (*http.Response, error) {
	of, path := r.runtime(), "/v1/runs/"+url.PathEscape(r.id)+"/stream"
	body := fields{"include_pings": true}
	if r.id == "" {
		path = "/v1/conversations/" + url.PathEscape(of.Conversation) + "/stream"
		if of.Conversation == "default" {
			body["agent_id"] = of.Agent
		}
	}
	if r.seq > 0 {
		body["starting_after"] = r.seq
	} else { // the stream restarts at the beginning
		r.decoder, r.calls = message.Decoder{}, gathered{}
	}
	return r.request(ctx, http.MethodPost, path, body)
}

func (r *run) follow(ctx context.Context, resp *http.Response) ([]message.ToolCall, error) {
	for pause := firstPause; ; pause = min(2*pause, mostPause) {
		had := r.seq
		err := r.read(resp)
		if r.over || r.stopped {
			break
		}
		if r.seq > had {
			pause = firstPause
		}
		if err := wait(ctx, pause); err != nil {
			return nil, err
		}
		r.Say(fmt.Sprintf("the message stream was lost (%v); asking for the rest", err))
		if resp, err = r.resume(ctx); err != nil {
			if isRejection(err) {
				return nil, nil // pending calls are in the list of messages
			}
			return nil, err
		}
	}
	if !r.act {
		return nil, nil
	}
	return r.calls.calls, nil
}

// maxMessage is the maximum size of a message, in bytes. A call in fragments has up to 16 MiB.
const maxMessage = 32 << 20

func (r *run) read(resp *http.Response) error {
	defer resp.Body.Close()
	if !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		r.over = true // a complete answer; pending calls are in the list of messages
		return nil
	}
	silent := time.AfterFunc(silentWithin, func() { resp.Body.Close() })
	defer silent.Stop()
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, maxMessage)
	var data []byte
	for !r.over && lines.Scan() {
		silent.Reset(silentWithin)
		line := lines.Bytes()
		text, isData := bytes.CutPrefix(line, []byte("data:"))
		switch {
		case isData && len(data)+len(text) > maxMessage:
			return bufio.ErrTooLong
		case isData:
			data = append(append(data, bytes.TrimPrefix(text, []byte(" "))...), '\n')
		case len(line) == 0 && len(data) > 0:
			r.take(bytes.Clone(bytes.TrimSpace(data)))
			data = data[:0]
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	return io.ErrUnexpectedEOF
}

func (r *run) take(frame []byte) {
	if string(frame) == "[DONE]" {
		r.over = true
		return
	}
	var head struct {
		Kind    string `json:"message_type"`
		RunID   string `json:"run_id"`
		Seq     int64  `json:"seq_id"`
		Reason  string `json:"stop_reason"`
		Message string `json:"message"`
	}
	if errors.Is(strict.Unmarshal(frame, &head), strict.ErrTwice) {
		return // not a message
	}
	if r.id == "" {
		r.id = head.RunID
	}
	if head.Kind == "error_message" {
		r.Say("the server says: " + head.Message)
	}
	if r.stopped && head.Kind == "ping" {
		r.over = true
	}
	seen := head.Seq != 0 && head.Seq <= r.seq
	if head.Kind == "ping" || r.stopped || seen {
		return
	}
	r.seq = max(r.seq, head.Seq)
	switch head.Kind {
	case "approval_request_message":
		r.calls.add(frame, &r.decoder)
	case "stop_reason":
		r.stopped, r.act = true, head.Reason == "requires_approval" || head.Reason == "end_turn"
		r.calls.add(frame, &r.decoder) // including calls in fragments
	}
}
