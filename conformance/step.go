//go:build linux

package conformance

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/gorilla/websocket"

	"github.com/toold/toold/conformance/suite"
	"github.com/toold/toold/internal/lazyregexp"
)

// step does one step of the case.
func (p *player) step(ctx context.Context, s step) error {
	name := s.Conn
	if name == "" {
		name = "a"
	}
	switch {
	case p.peer != nil:
		return p.peer.step(ctx, s)
	case s.HTTPGet != nil:
		return p.get(ctx, *s.HTTPGet, nil)
	case s.HTTPPost != nil:
		p.noteCalls(s.HTTPPost.JSON)
		return p.request(ctx, http.MethodPost, s.HTTPPost.Path, s.HTTPPost.JSON, nil)
	case s.HTTPUpgrade != nil:
		return p.get(ctx, "/v1/ws", *s.HTTPUpgrade)
	case s.Await != nil:
		_, err := p.await(ctx, name, s.Await)
		return err
	case s.AwaitAllReturns > 0:
		return p.awaitReturns(ctx, s.AwaitAllReturns)
	case s.WaitMS != nil:
		return p.pause(ctx, s.WaitMS)
	case s.KillDaemon != "":
		return p.killDaemon(s.KillDaemon)
	case s.StartDaemon:
		return p.start(ctx)
	}
	return p.connStep(ctx, name, s)
}

// connStep does a step of one connection. A connection that was not there yet
// is made.
func (p *player) connStep(ctx context.Context, name string, s step) error {
	c := p.conns[name]
	if s.Reconnect {
		if c != nil {
			c.close()
		}
		_, err := p.connect(ctx, name)
		return err
	}
	if c == nil {
		var err error
		if c, err = p.connect(ctx, name); err != nil {
			return err
		}
	}
	switch {
	case s.Disconnect:
		c.close()
	case s.PauseReading:
		c.pause()
	case s.ResumeReading:
		c.resume()
	case s.FreezeSocket:
		c.freeze()
	default:
		return p.send(c, s)
	}
	return nil
}

// send sends the frame of a step.
func (p *player) send(c *conn, s step) error {
	switch {
	case s.JSON != nil:
		data, err := p.substitute(s.JSON)
		if err != nil {
			return err
		}
		p.noteCalls(data)
		if s.Fragments > 1 {
			return c.sendFragments(data, s.Fragments)
		}
		return c.send(websocket.TextMessage, data)
	case s.Text != nil:
		return c.send(websocket.TextMessage, []byte(*s.Text))
	case s.BinaryB64 != nil:
		return sendB64(c, websocket.BinaryMessage, *s.BinaryB64)
	case s.BytesB64Text != nil:
		return sendB64(c, websocket.TextMessage, *s.BytesB64Text)
	case s.Gen != nil:
		p.noteCalls(s.Gen.Wrap)
		return s.Gen.send(c)
	}
	return fmt.Errorf("the step says nothing")
}

// noteCalls remembers the ids of the calls that a frame requests.
func (p *player) noteCalls(data []byte) {
	var frame map[string]any
	if json.Unmarshal(data, &frame) != nil {
		return
	}
	ids := itemCalls(frame)
	for _, path := range []string{"tool_call_id", "request.tool_call_id"} {
		if id, ok := lookup(path, frame); ok && p.peer != nil {
			ids = append(ids, fmt.Sprint(id))
		}
	}
	for _, id := range ids {
		p.repeated = p.repeated || p.sent[id]
		p.sent[id] = true
	}
	const request = "approval_request_message"
	if frame["role"] == "assistant" || frame["message_type"] == request || frame["type"] == request {
		p.noteMembers(frame)
	}
}

// noteMembers remembers the ids of tool_call and tool_calls.
func (p *player) noteMembers(frame map[string]any) {
	inFrame := map[string]bool{} // tool_call mirrors the first of tool_calls
	members, _ := frame["tool_calls"].([]any)
	for _, member := range append(members, frame["tool_call"]) {
		call, _ := member.(map[string]any)
		for _, field := range []string{"tool_call_id", "id"} {
			if id, ok := call[field].(string); ok && id != "" && len(id) <= 256 {
				p.repeated = p.repeated || !inFrame[id] && p.sent[id]
				p.sent[id], inFrame[id] = true, true
				break
			}
		}
	}
}

// itemCalls are the ids of the calls of an item of the Responses API, or of Anthropic's
// blocks.
func itemCalls(frame map[string]any) (ids []string) {
	if commands, _ := lookup("action.commands", frame); frame["type"] == "shell_call" {
		if list, _ := commands.([]any); len(list) > 1 {
			return []string{fmt.Sprint(frame["call_id"], "#1")} // the others may never be begun
		}
	}
	blocks, _ := frame["content"].([]any)
	for _, block := range append(blocks, frame) {
		m, _ := block.(map[string]any)
		field := map[any]string{"shell_call": "call_id", "local_shell_call": "call_id", "apply_patch_call": "call_id", "tool_use": "id"}[m["type"]]
		if id, ok := m[field].(string); ok && m["status"] != "in_progress" {
			ids = append(ids, id)
		}
	}
	return ids
}

func sendB64(c *conn, kind int, text string) error {
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return err
	}
	return c.send(kind, data)
}

// send generates and sends frames. The daemon may close the connection before it has read all.
func (g *generator) send(c *conn) error {
	switch {
	case g.Frames > 0:
		for range g.Frames {
			if err := c.send(websocket.TextMessage, []byte(g.Text)); err != nil {
				return c.waitClosed(err)
			}
		}
		return nil
	case g.Nest > 0:
		return c.send(websocket.TextMessage, []byte(g.Prefix+strings.Repeat(g.Open, g.Nest)+strings.Repeat(g.Close, g.Nest)+g.Suffix))
	case g.Bytes > 0 && g.Repeat != "":
		content, err := json.Marshal(strings.Repeat(g.Repeat, g.Bytes/len(g.Repeat)))
		if err != nil {
			return err
		}
		return c.send(websocket.TextMessage, bytes.Replace(g.Wrap, []byte(`"$GEN"`), content, 1))
	}
	return fmt.Errorf("the generator says nothing")
}

// substitute replaces "$name" by saved values. A frame without any is sent byte for byte.
func (p *player) substitute(frame json.RawMessage) ([]byte, error) {
	out := []byte(frame)
	for name, value := range p.vars {
		quoted := []byte(strconv.Quote("$" + name))
		if !bytes.Contains(out, quoted) {
			continue
		}
		text, err := json.Marshal(value)
		if err != nil {
			return nil, err
		}
		out = bytes.ReplaceAll(out, quoted, text)
	}
	return out, nil
}

// get makes an HTTP request without a body; see request.
func (p *player) get(ctx context.Context, path string, upgrade map[string]string) error {
	return p.request(ctx, http.MethodGet, path, nil, upgrade)
}

// request makes an HTTP request and keeps its status. Headers given make it a
// handshake. It carries the agent's token unless the case is about tokens.
func (p *player) request(ctx context.Context, method, path string, body []byte, upgrade map[string]string) error {
	limit, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	request, err := http.NewRequestWithContext(limit, method, p.daemon.http+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	if p.c.Setup.Auth != "token" {
		request.Header.Set("Authorization", "Bearer "+p.daemon.tokens["agent"])
	}
	if upgrade != nil {
		for name, value := range map[string]string{
			"Connection": "Upgrade", "Upgrade": "websocket",
			"Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
		} {
			request.Header.Set(name, value)
		}
	}
	for name, value := range upgrade {
		if http.CanonicalHeaderKey(name) == "Host" {
			request.Host = value
		} else {
			request.Header.Set(name, value)
		}
	}
	transport := &http.Transport{DisableKeepAlives: true}
	defer transport.CloseIdleConnections()
	response, err := transport.RoundTrip(request)
	if err != nil {
		p.statuses = append(p.statuses, 0)
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusSwitchingProtocols {
		answer, _ := io.ReadAll(response.Body)
		if strings.HasPrefix(path, "/v1/calls") && json.Valid(answer) {
			p.rec.add("http", 0, websocket.TextMessage, answer)
		}
	}
	p.statuses = append(p.statuses, response.StatusCode)
	return nil
}

var pingIntervals = lazyregexp.New(`^(\d+)x ping interval$`)

// pause lets time pass.
func (p *player) pause(ctx context.Context, spec json.RawMessage) error {
	var ms float64
	var text string
	wait := time.Duration(0)
	switch {
	case json.Unmarshal(spec, &ms) == nil:
		wait = time.Duration(ms * float64(time.Millisecond))
	case json.Unmarshal(spec, &text) == nil && pingIntervals().MatchString(text):
		n, _ := strconv.Atoi(pingIntervals().FindStringSubmatch(text)[1])
		wait = time.Duration(n) * p.site.ping
	default:
		return fmt.Errorf("cannot wait %s", spec)
	}
	return suite.Sleep(ctx, wait)
}

func (p *player) killDaemon(name string) error {
	sig, ok := map[string]syscall.Signal{
		"TERM": syscall.SIGTERM, "KILL": syscall.SIGKILL, "INT": syscall.SIGINT, "HUP": syscall.SIGHUP,
	}[strings.TrimPrefix(name, "SIG")]
	if !ok {
		return fmt.Errorf("unknown signal %q", name)
	}
	return p.daemon.stop(sig)
}
