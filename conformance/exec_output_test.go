//go:build linux

package conformance

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gorilla/websocket"
	"github.com/toold/toold/conformance/suite/execution"
)

// fetchLimit is how much of a stream is fetched: of more, only the end.
const fetchLimit = 32 << 20

// fetch reads what is recorded of the streams that the case asks about.
func (r *run) fetch(ctx context.Context) error {
	if r.ret == nil || !r.p.daemon.alive() || !r.p.conn.open() {
		return nil
	}
	if r.outputID() != r.id {
		// It has just begun; what is read is its first output.
		r.p.rec.wait(ctx, func(frames []frame) bool {
			return slices.ContainsFunc(frames, func(f frame) bool {
				m, _ := f.value.(map[string]any)
				return m["tool_call_id"] == r.outputID() && (typeIs(m, "tool_output_delta") || typeIs(m, "background_ended"))
			})
		})
	}
	for _, stream := range []string{"stdout", "stderr", "combined"} {
		asked := r.c.Expects(stream+"_") || stream == "stdout" && r.c.Expects("spool_", "reassembled_", "exit_code")
		if !asked || stream == "combined" && !r.ran() {
			continue
		}
		size, _ := r.ret[stream+"_bytes"].(float64)
		from := max(0, int64(size)-fetchLimit)
		got, err := r.read(ctx, stream, from)
		if err != nil {
			return fmt.Errorf("cannot read the recorded %s: %w", stream, err)
		}
		r.output[stream] = got
	}
	return nil
}

// outputID is the call whose output is that of the command: the call itself, or
// the one as which it runs on in the background.
func (r *run) outputID() string {
	if id, ok := lookup("background.tool_call_id", r.ret); ok {
		return fmt.Sprint(id)
	}
	return r.id
}

// ran reports whether the command ever did.
func (r *run) ran() bool {
	return slices.ContainsFunc(r.about, func(f frame) bool { return typeIs(f.value, "tool_started") }) || r.ret["exit_code"] != nil || r.outputID() != r.id
}

// read reads a recorded stream from an offset to its end.
func (r *run) read(ctx context.Context, stream string, from int64) (string, error) {
	if !r.ran() {
		return "", nil
	}
	var all strings.Builder
	for {
		m, err := r.ask(ctx, map[string]any{
			"message_type": "get_output", "tool_call_id": r.outputID(), "stream": stream, "offset": from, "limit": 1 << 20,
			"request_id": fmt.Sprintf("%s %s %d", r.id, stream, from),
		})
		if err != nil {
			return "", err
		}
		data, _ := m["data"].(string)
		if b64, ok := m["data_b64"].(string); ok {
			raw, err := base64.StdEncoding.DecodeString(b64)
			if err != nil {
				return "", err
			}
			data = string(raw)
		}
		all.WriteString(data)
		next, _ := m["next_offset"].(float64)
		running := r.outputID() != r.id && int64(next) == from
		if m["eof"] == true || m["message_type"] != "output" || running {
			return all.String(), nil
		}
		if int64(next) <= from {
			return "", fmt.Errorf("it does not go on after byte %d: %.200s", from, text(m))
		}
		from = int64(next)
	}
}

// ask sends a request and returns the answer. That a call left no output is one.
func (r *run) ask(ctx context.Context, request map[string]any) (answer map[string]any, err error) {
	conn := r.p.conn
	if err := conn.send(websocket.TextMessage, []byte(text(request))); err != nil {
		return nil, err
	}
	err = r.p.rec.wait(ctx, func(frames []frame) bool {
		for _, f := range frames {
			m, _ := f.value.(map[string]any)
			if m["request_id"] == request["request_id"] && f.conn == conn.name && f.life == conn.life {
				answer = m
				return true
			}
		}
		return !conn.open()
	})
	switch {
	case err != nil:
		return nil, err
	case answer == nil:
		return nil, errors.New("the connection ended")
	case typeIs(answer, "error_message") && !typeIs(answer, "error_message", "not_found"):
		return nil, fmt.Errorf("%s", text(answer))
	}
	return answer, nil
}

// live puts together what was seen of a stream while it ran, on all lives of the
// connection; seen tells which bytes. Bytes that come twice must be the same.
func (r *run) live(stream string, size int) (got []byte, seen []bool, err error) {
	got, seen = make([]byte, size), make([]bool, size)
	for _, f := range r.about {
		m := f.value.(map[string]any)
		if !typeIs(m, "tool_output_delta") || m["stream"] != stream {
			continue
		}
		data, _ := m["data"].(string)
		if b64, ok := m["data_b64"].(string); ok {
			raw, _ := base64.StdEncoding.DecodeString(b64)
			data = string(raw)
		}
		offset, _ := m["offset"].(float64)
		if int(offset)+len(data) > size {
			return nil, nil, fmt.Errorf("live %s has bytes up to %d, the record ends at %d", stream, int(offset)+len(data), size)
		}
		for i := range len(data) {
			at := int(offset) + i
			if seen[at] && got[at] != data[i] {
				return nil, nil, fmt.Errorf("byte %d of live %s comes twice and differs", at, stream)
			}
			got[at], seen[at] = data[i], true
		}
	}
	return got, seen, nil
}

// text returns a stream of the call. The result, which a model reads, is not
// recorded as a stream.
func (r *run) text(stream string) execution.Output {
	if stream == "result" {
		text, _ := r.ret["result"].(string)
		return execution.Output{All: text, Returned: text, Bytes: int64(len(text))}
	}
	p := execution.Output{All: r.output[stream], Bytes: int64(len(r.output[stream]))}
	p.Returned, _ = join(r.ret[stream])
	if size, ok := r.ret[stream+"_bytes"].(float64); ok {
		p.Bytes = int64(size)
	}
	if stream == "combined" {
		p.Returned = p.All
	}
	return p
}
