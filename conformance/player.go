//go:build linux

package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/gorilla/websocket"

	"github.com/toold/toold/conformance/suite"
	"github.com/toold/toold/internal/journal"
)

// player plays one case against a daemon of its own.
type player struct {
	c        wireCase
	program  string
	site     *site
	daemon   *daemon
	journal  *journal.Journal // the daemon's, read beside it
	rec      *recorder
	vars     vars
	conns    map[string]*conn
	allConns []*conn // every connection there was, to be ended
	peer     *peer   // a server to which toold connects, when the case is about one
	yield    string  // how long toold waits for a call before it answers that one; "": as usual
	watch    *watch
	awaited  map[int]bool // the numbers of the frames that await steps took

	sent     map[string]bool // ids of the calls that were requested
	repeated bool            // one of them in several frames
	statuses []int           // of the HTTP steps
	begun    time.Time
	late     suite.Lateness
	notes    []string // what went wrong on the way, in case the expectations fail
	secret   string   // marks the processes of this case

	unchecked func(text string)
}

const patience = suite.Patience

// play plays a case in base and returns the reasons why it fails, and what was only
// too late. It reports to unchecked what the case expects and nothing checks.
func play(ctx context.Context, program, base string, c wireCase, unchecked func(text string)) (reasons, late []string) {
	p := &player{
		unchecked: unchecked,
		c:         c, program: program, rec: newRecorder(), vars: vars{}, conns: map[string]*conn{}, awaited: map[int]bool{}, sent: map[string]bool{},
		secret: fmt.Sprintf("%09d", time.Now().UnixNano()%1e9),
	}
	defer func() {
		if err := p.end(); err != nil {
			reasons = append(reasons, err.Error())
		}
	}()
	if err := p.prepare(ctx, base); err != nil {
		return []string{"cannot prepare: " + err.Error()}, nil
	}
	p.begun = time.Now()
	for i, s := range p.c.Send {
		if err := p.step(ctx, s); err != nil {
			p.notes = append(p.notes, fmt.Sprintf("step %d: %v", i+1, err))
		}
	}
	reasons = p.verify(ctx)
	if len(reasons) > 0 {
		frames, _ := p.rec.all()
		reasons = append(reasons, p.notes...)
		reasons = append(reasons, "the clients saw:"+transcript(frames, p.begun), p.daemon.diagnostics())
	}
	return reasons, p.late.All()
}

func (p *player) prepare(ctx context.Context, base string) (err error) {
	if p.site, err = newSite(base, p.c); err != nil {
		return err
	}
	p.adapt()
	if err := p.start(ctx); err != nil {
		return err
	}
	if isPeer(p.c.Dialect) {
		if err := p.startPeer(); err != nil {
			return err
		}
	}
	if p.journal, err = journal.Open(ctx, p.site.state, journal.Self()); err != nil {
		return err
	}
	names := slices.Sorted(maps.Keys(p.c.Setup.Roles))
	if _, ok := p.c.Setup.Roles["a"]; !ok && p.usesSocket() {
		names = append(names, "a")
	}
	for _, name := range names {
		if _, err := p.connect(ctx, name); err != nil {
			return err
		}
	}
	if err := p.fixture(ctx); err != nil {
		return err
	}
	p.watch, err = newWatch(ctx, p)
	return err
}

// start starts the daemon and, where the policy allows everything, the approver
// that agrees to what no policy can allow.
func (p *player) start(ctx context.Context) error {
	limit, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var err error
	if p.daemon, err = startDaemon(limit, p.program, p.site); err != nil {
		return err
	}
	var word string
	answer := approve
	json.Unmarshal(p.c.Setup.Policy, &word)
	switch {
	case word == "ask_all" && isPeer(p.c.Dialect):
		answer = func(*conn, int, []byte) {} // somebody is there, and has not answered
	case word != "allow_all" && len(p.c.Setup.Policy) > 0:
		return nil
	}
	conn, err := dialApprover(limit, p.daemon, answer)
	if err == nil {
		p.allConns = append(p.allConns, conn)
	}
	return err
}

// approver connects an approver that approves every call.
func approver(ctx context.Context, d *daemon) (*conn, error) { return dialApprover(ctx, d, approve) }

// dialApprover connects an approver.
func dialApprover(ctx context.Context, d *daemon, answer func(*conn, int, []byte)) (*conn, error) {
	conn, err := dial(ctx, d, "(approver)", 0, d.tokens["approver"], answer, func() {})
	if err != nil {
		return nil, err
	}
	if err := greet(ctx, conn); err != nil {
		conn.close()
		return nil, err
	}
	return conn, nil
}

// approve approves an approval request.
func approve(c *conn, _ int, data []byte) {
	var request struct {
		Type string `json:"message_type"`
		Call struct {
			ID string `json:"tool_call_id"`
		} `json:"tool_call"`
		ID string `json:"id"`
	}
	if json.Unmarshal(data, &request) != nil || request.Type != "approval_request_message" {
		return
	}
	answer, _ := json.Marshal(map[string]any{
		"message_type": "approval_response_message", "approve": true, "approval_request_id": request.ID,
	})
	c.send(websocket.TextMessage, answer)
}

// usesSocket reports whether a step uses a WebSocket.
func (p *player) usesSocket() bool {
	other := func(s step) bool { return s.HTTPGet == nil && s.HTTPPost == nil && s.HTTPUpgrade == nil }
	return !isPeer(p.c.Dialect) && slices.ContainsFunc(p.c.Send, other)
}

// connect opens a connection, or a new life of one, as the roles of the case say.
func (p *player) connect(ctx context.Context, name string) (*conn, error) {
	roles := p.c.Setup.Roles[name]
	if len(roles) == 0 {
		roles = []string{"agent"}
	}
	token := p.daemon.tokens[p.site.tokens[strings.Join(roles, ",")]]
	life := 0
	if old := p.conns[name]; old != nil {
		life = old.life + 1
	}
	onFrame := func(_ *conn, kind int, data []byte) { p.rec.add(name, life, kind, data) }
	limit, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	c, err := dial(limit, p.daemon, name, life, token, onFrame, p.rec.notify)
	if err != nil {
		return nil, err
	}
	p.conns[name] = c
	p.allConns = append(p.allConns, c)
	return c, greet(limit, c)
}

// fixture puts calls into the journal before the case begins.
func (p *player) fixture(ctx context.Context) error {
	switch p.c.Setup.Fixture {
	case "":
		return nil
	case "two runs, 20 calls":
	default:
		return fmt.Errorf("unknown fixture %q", p.c.Setup.Fixture)
	}
	for i := range 20 {
		run, args := fmt.Sprintf("run-%d", i%2+1), fmt.Sprintf(`{"command":"echo %d"}`, i)
		call := map[string]any{"name": "bash", "tool_call_id": fmt.Sprintf("fixture_%d", i), "arguments": args}
		request, _ := json.Marshal(map[string]any{
			"message_type": "approval_request_message", "id": fmt.Sprintf("message-fixture-%d", i),
			"date": "2026-02-17T10:30:00Z", "run_id": run, "tool_call": call, "tool_calls": []any{call},
		})
		if err := p.conns["a"].send(websocket.TextMessage, request); err != nil {
			return err
		}
	}
	if err := p.awaitReturns(ctx, 20); err != nil {
		return err
	}
	page, err := p.ask(ctx, map[string]any{"message_type": "list_messages", "request_id": "fixture", "order": "asc", "limit": 1})
	if err != nil {
		return err
	}
	p.rec.forget()
	clear(p.awaited)
	return p.vars.keep(matcher{"$save": map[string]any{"first": "messages.0.id"}}, page)
}

// ask sends a request with a request_id on connection a and returns the answer.
func (p *player) ask(ctx context.Context, request map[string]any) (any, error) {
	data, _ := json.Marshal(request)
	c := p.conns["a"]
	if c == nil {
		return nil, errors.New("there is no connection a")
	}
	if err := c.send(websocket.TextMessage, data); err != nil {
		return nil, err
	}
	f, err := p.await(ctx, "a", matcher{"request_id": request["request_id"]})
	return f.value, err
}

// await waits for a frame on the present life of a connection that no earlier
// await has taken.
func (p *player) await(ctx context.Context, name string, m matcher) (found frame, err error) {
	c, ok := p.conns[name]
	if !ok && p.peer == nil {
		return frame{}, fmt.Errorf("there is no connection %s", name)
	}
	limit, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err = p.rec.wait(limit, func(frames []frame) bool {
		for i, f := range frames {
			present := f.conn == name && (c == nil || f.life == c.life)
			if present && !p.awaited[i] && p.vars.match(m, name, f.value) == "" {
				found, p.awaited[i] = f, true
				return true
			}
		}
		return c != nil && !c.open()
	})
	if err != nil || found.value == nil {
		return found, fmt.Errorf("no frame on connection %s matches %s", name, suite.Short(map[string]any(m)))
	}
	return found, p.vars.keep(m, found.value)
}

// awaitReturns waits until so many returns have arrived.
func (p *player) awaitReturns(ctx context.Context, n int) error {
	limit, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	got := 0
	err := p.rec.wait(limit, func(frames []frame) bool {
		got = 0
		for _, f := range frames {
			if isReturn(f.value) {
				got++
			}
		}
		return got >= n
	})
	if err != nil {
		return fmt.Errorf("%d returns arrived, want %d", got, n)
	}
	return nil
}

func isReturn(v any) bool {
	m, _ := v.(map[string]any)
	_, ok := returned(m)
	return ok
}

// returned is the id of the call, or of the item, that a frame answers.
func returned(m map[string]any) (id string, ok bool) {
	field := map[any]string{
		"shell_call_output": "call_id", "local_shell_call_output": "call_id", "apply_patch_call_output": "call_id", "tool_result": "tool_use_id",
	}[m["type"]]
	if m["message_type"] == "tool_return_message" || m["role"] == "tool" {
		field = "tool_call_id"
	}
	id, _ = m[field].(string)
	return id, field != ""
}

// end ends every connection and the daemon.
func (p *player) end() error {
	if p.watch != nil {
		p.watch.stop()
	}
	if p.peer != nil {
		p.peer.stop()
	}
	for _, c := range p.allConns {
		c.close()
	}
	if p.journal != nil {
		p.journal.Close()
	}
	if p.daemon == nil {
		return nil
	}
	return p.daemon.stop(syscall.SIGTERM)
}
