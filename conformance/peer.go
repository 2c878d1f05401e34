//go:build linux

package conformance

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/gorilla/websocket"
)

// peer is a scripted server of Letta to which `toold letta` connects: an App Server, or one
// of the older protocol, whose message stream is over HTTP. What toold sends it is recorded
// as frames of the connection a, the requests for a stream as those of the connection stream.
type peer struct {
	p      *player
	server *httptest.Server
	toold  *exec.Cmd
	gone   chan struct{} // closed when the case is over

	mu      sync.Mutex
	life    int
	ws      *websocket.Conn // of an App Server, when it has taken toold's tools
	changed chan struct{}   // closed, and replaced, when there is another ws
	fault   string          // of the next post
	status  int             // of the next post; 0: success
	body    json.RawMessage

	script chan streamEvent // what comes on the streams
}

// streamEvent is what happens on a message stream.
type streamEvent struct {
	text string // is sent
	end  bool   // the stream ends
	cut  bool   // the connection is lost
}

// isPeer reports whether a dialect is that of a server to which toold connects.
func isPeer(dialect string) bool {
	return slices.Contains([]string{"appserver_external", "appserver_gate", "bridge_sse"}, dialect)
}

// startPeer starts the server and `toold letta`.
func (p *player) startPeer() error {
	s := &peer{p: p, gone: make(chan struct{}), changed: make(chan struct{}), script: make(chan streamEvent, 256)}
	p.peer = s
	scheme, serve := "ws", s.appServer
	if p.c.Dialect == "bridge_sse" {
		scheme, serve = "http", s.bridge
	}
	s.server = httptest.NewServer(http.HandlerFunc(serve))
	s.toold = exec.Command(p.program, "letta", "--url", scheme+strings.TrimPrefix(s.server.URL, "http"), "--agent", "agent-1", "--conversation", "conv-1",
		"-C", p.site.workspace, "--state-dir", p.site.state, "--config", p.site.config)
	if p.yield != "" {
		s.toold.Args = append(s.toold.Args, "--answer-after", p.yield)
	}
	s.toold.Env = []string{"HOME=" + p.site.home, "PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8"}
	s.toold.Stderr = p.daemon.log
	s.toold.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return s.toold.Start()
}

func (s *peer) stop() {
	close(s.gone)
	if s.toold.Process != nil {
		syscall.Kill(-s.toold.Process.Pid, syscall.SIGKILL)
		s.toold.Wait()
	}
	s.server.CloseClientConnections()
	s.server.Close()
}

// appServer serves one connection as Letta Code 0.32.18 does.
func (s *peer) appServer(w http.ResponseWriter, r *http.Request) {
	var up websocket.Upgrader
	ws, err := up.Upgrade(w, r, nil)
	if err != nil {
		return
	}
	defer ws.Close()
	s.mu.Lock()
	s.life++
	life := s.life
	s.mu.Unlock()
	of := map[string]any{"agent_id": "agent-1", "conversation_id": "conv-1"}
	mode := "standard"
	for {
		kind, data, err := ws.ReadMessage()
		if err != nil {
			return
		}
		s.p.rec.add("a", life, kind, data)
		var f map[string]any
		json.Unmarshal(data, &f)
		answer := map[string]any{"type": fmt.Sprint(f["type"]) + "_response", "request_id": f["request_id"], "success": true}
		switch f["type"] {
		case "app_server_info":
			answer["protocol_version"], answer["letta_code_version"] = 1, "0.32.18"
			answer["capabilities"] = map[string]any{"runtime_external_tools_update": true}
		case "input":
			answer["type"], answer["accepted"] = "input_accepted", true
		case "change_device_state":
			mode = "strict"
		case "external_tool_call_response":
			continue
		}
		s.write(ws, answer)
		if f["type"] == "sync" || f["type"] == "change_device_state" {
			s.write(ws, map[string]any{"type": "update_device_status", "runtime": of, "device_status": map[string]any{"current_permission_mode": mode}})
		}
		if f["type"] == "runtime_external_tools_update" {
			s.setConn(ws)
		}
	}
}

func (s *peer) write(ws *websocket.Conn, f any) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return ws.WriteJSON(f)
}

// setConn makes a connection the one on which the script is played.
func (s *peer) setConn(ws *websocket.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ws = ws
	close(s.changed)
	s.changed = make(chan struct{})
}

// waitConn waits for a connection that has taken toold's tools.
func (s *peer) waitConn(ctx context.Context) (*websocket.Conn, error) {
	for {
		s.mu.Lock()
		ws, changed := s.ws, s.changed
		s.mu.Unlock()
		if ws != nil {
			return ws, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, errors.New("toold has not connected to the App Server")
		}
	}
}

// bridge serves a request as the older server does.
func (s *peer) bridge(w http.ResponseWriter, r *http.Request) {
	var body json.RawMessage
	json.NewDecoder(r.Body).Decode(&body)
	switch {
	case r.Method == http.MethodGet:
		fmt.Fprintln(w, `[]`) // it remembers nothing
	case strings.HasSuffix(r.URL.Path, "/stream"):
		s.p.rec.add("stream", 0, websocket.TextMessage, body)
		s.stream(w, r)
	default:
		s.mu.Lock()
		fault, status, text := s.fault, s.status, s.body
		s.fault, s.status = "", 0
		s.mu.Unlock()
		s.p.rec.add("a", 0, websocket.TextMessage, body)
		switch {
		case fault != "":
			panic(http.ErrAbortHandler) // net/http resets the connection
		case status != 0:
			w.WriteHeader(status)
			w.Write(text)
		default:
			s.stream(w, r)
		}
	}
}

// stream sends the events of the script, and pings in between.
func (s *peer) stream(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	out := http.NewResponseController(w)
	out.Flush()
	ping := time.NewTicker(time.Second)
	defer ping.Stop()
	for {
		select {
		case e := <-s.script:
			fmt.Fprint(w, e.text)
			out.Flush()
			if e.cut {
				panic(http.ErrAbortHandler)
			}
			if e.end {
				return
			}
		case <-ping.C:
			fmt.Fprint(w, "data: {\"message_type\":\"ping\"}\n\n")
			out.Flush()
		case <-r.Context().Done():
			return
		case <-s.gone:
			return
		}
	}
}

// step does one step of a case.
func (s *peer) step(ctx context.Context, st step) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	switch {
	case st.Await != nil:
		_, err := s.p.await(ctx, cmp.Or(st.Conn, "a"), st.Await)
		return err
	case st.WaitMS != nil:
		return s.p.pause(ctx, st.WaitMS)
	case st.KillDaemon != "":
		return s.p.killDaemon(st.KillDaemon)
	case st.StartDaemon:
		return s.p.start(ctx)
	case st.Accept:
		return nil // it always does
	case s.p.c.Dialect == "bridge_sse":
		return s.sse(ctx, st)
	}
	ws, err := s.waitConn(ctx)
	if err != nil {
		return err
	}
	if st.Disconnect {
		s.mu.Lock()
		s.ws = nil
		s.mu.Unlock()
		return ws.Close()
	}
	data, err := s.p.substitute(st.JSON)
	if err != nil {
		return err
	}
	s.p.noteCalls(data)
	return s.write(ws, json.RawMessage(data))
}

// sse does a step on the message stream.
func (s *peer) sse(ctx context.Context, st step) error {
	switch {
	case st.SSE != nil:
		s.p.noteCalls(st.SSE)
		s.script <- streamEvent{text: "data: " + string(st.SSE) + "\n\n"}
	case st.SSEEvent != "":
		s.script <- streamEvent{text: "event: " + st.SSEEvent + "\ndata: " + string(st.Data) + "\n\n"}
	case st.SSEDone:
		s.script <- streamEvent{text: "data: [DONE]\n\n", end: true}
	case st.SSEClose:
		s.script <- streamEvent{end: true}
	case st.SSECut:
		s.script <- streamEvent{cut: true}
	case st.FailNextPost != "", st.NextPostStatus != 0:
		s.mu.Lock()
		defer s.mu.Unlock()
		s.fault, s.status, s.body = st.FailNextPost, st.NextPostStatus, st.Body
	case st.ExpectResume != nil:
		want := matcher{"starting_after": map[string]any{"$type": "integer"}}
		var after float64
		if json.Unmarshal(st.ExpectResume, &after) == nil {
			want["starting_after"] = after
		} else {
			json.Unmarshal(st.ExpectResume, &want)
		}
		_, err := s.p.await(ctx, "stream", want)
		return err
	default:
		return errors.New("the step is none of a message stream")
	}
	return nil
}

// missingPosts names the first of the wanted bodies that toold has not sent in this order; "" if it has sent all.
func (p *player) missingPosts(wanted []matcher, frames []frame) string {
	frames = slices.DeleteFunc(slices.Clone(frames), func(f frame) bool { return f.conn != "a" })
	for i, m := range wanted {
		if i == len(frames) {
			return fmt.Sprintf("%d bodies were posted, want %d", i, len(wanted))
		}
		if why := p.matchPost(m, frames[i].value); why != "" {
			return fmt.Sprintf("body %d: %s:\n  %.1000s", i+1, why, text(frames[i].value))
		}
	}
	return ""
}

// matchPost returns why a body does not match. The key ids has the calls that it answers.
func (p *player) matchPost(m matcher, body any) string {
	rest := matcher{}
	for key, want := range m {
		if key == "ids" {
			if why := p.vars.matchValue(want, answeredBy(body)); why != "" {
				return "ids: " + why
			}
			continue
		}
		rest[key] = want
	}
	if why := p.vars.match(rest, "a", body); why != "" {
		return why
	}
	if err := p.vars.keep(rest, body); err != nil {
		return err.Error()
	}
	return ""
}

// answeredBy are the ids of the calls that a body answers, sorted.
func answeredBy(body any) []any {
	var ids []any
	for _, list := range []string{"messages.0.approvals", "messages.0.tool_returns"} {
		found, _ := lookup(list, body)
		items, _ := found.([]any)
		for _, item := range items {
			id, _ := lookup("tool_call_id", item)
			ids = append(ids, fmt.Sprint(id))
		}
	}
	slices.SortFunc(ids, func(a, b any) int { return strings.Compare(a.(string), b.(string)) })
	return ids
}
