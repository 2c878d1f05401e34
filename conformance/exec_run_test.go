//go:build linux

package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/gorilla/websocket"
	"github.com/toold/toold/conformance/suite"
	"github.com/toold/toold/conformance/suite/execution"
)

// run is one call of a case, as its client saw it.
type run struct {
	p        *execPlayer
	c        execution.Case
	id       string
	request  []byte
	sent     time.Time
	ret      map[string]any // the return; nil when none came
	returned time.Time
	about    []frame           // everything about the call, in order of arrival
	output   map[string]string // what is recorded of each stream; see fetch
}

// run makes the call of a case and waits until it is over.
func (p *execPlayer) run(ctx context.Context, c execution.Case, id string) (*run, error) {
	r := &run{p: p, c: c, id: id, output: map[string]string{}}
	wait := patience
	if c.Options.TimeoutMS != nil {
		wait += time.Duration(c.Timeout(*c.Options.TimeoutMS)) * time.Millisecond
	}
	limit, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	args, err := execArguments(c, id)
	if err != nil {
		return nil, err
	}
	r.request, err = json.Marshal(map[string]any{
		"message_type": "approval_request_message",
		"tool_call":    map[string]any{"tool_call_id": id, "tool_name": c.Tool, "arguments": args},
	})
	if err != nil {
		return nil, err
	}
	r.sent = time.Now()
	if err := r.begin(limit); err != nil {
		return nil, err
	}
	for _, a := range r.actions() {
		if err := r.act(limit, a); err != nil {
			return nil, fmt.Errorf("%s: %w", a.what, err)
		}
	}
	r.finish(limit)
	return r, r.fetch(limit)
}

// begin sends the request and waits until the command runs, or never will.
func (r *run) begin(ctx context.Context) error {
	o := r.c.Options
	if o.CancelFirst {
		if err := r.send(map[string]any{"message_type": "cancel", "tool_call_id": r.id}); err != nil {
			return err
		}
	}
	for range max(1, o.SendTimes) {
		if err := r.p.conn.send(websocket.TextMessage, r.request); err != nil {
			return err
		}
	}
	if o.ClientReadsAfter != "" {
		return r.readAfter(o.ClientReadsAfter)
	}
	r.p.rec.wait(ctx, func(frames []frame) bool {
		return r.over(frames) || !r.p.conn.open() || slices.ContainsFunc(frames, func(f frame) bool {
			return r.concerns(f) && typeIs(f.value, "tool_started")
		})
	})
	return nil
}

// readAfter reads nothing until the command has made a file in the workspace.
func (r *run) readAfter(name string) error {
	r.p.conn.pause()
	defer r.p.conn.resume()
	made := func() bool {
		_, err := os.Lstat(filepath.Join(r.p.site.workspace, name))
		return err == nil
	}
	const limit = 2 * time.Minute
	if !suite.Poll(limit, made) {
		return fmt.Errorf("the command did not make %s within %v while its client read nothing", name, limit)
	}
	return nil
}

// action is what the case does at some time while the command runs.
type action struct {
	what string
	at   time.Duration
	do   func(ctx context.Context) error
}

// actions lists what the case does, in order of time.
func (r *run) actions() (list []action) {
	o := r.c.Options
	add := func(what string, at *int, do func(ctx context.Context) error) {
		if at != nil {
			list = append(list, action{what, time.Duration(*at) * time.Millisecond, do})
		}
	}
	input := func(what string, value any) map[string]any {
		return map[string]any{"message_type": "tool_input", "tool_call_id": r.id, what: value}
	}
	add("resize", o.ResizeAtMS, func(ctx context.Context) error {
		r.announced(ctx)
		return r.send(input("resize", map[string]int{"rows": o.ResizeTo[0], "cols": o.ResizeTo[1]}))
	})
	add("stdin", o.StdinAtMS, func(context.Context) error {
		err := r.send(input("data", o.Stdin))
		if o.StdinEOF == nil || *o.StdinEOF {
			err = errors.Join(err, r.send(input("eof", true)))
		}
		return err
	})
	add("signal", o.SignalAtMS, func(ctx context.Context) error { r.announced(ctx); return r.signal() })
	add("cancel", o.CancelAtMS, func(ctx context.Context) error { r.announced(ctx); return r.cancel(max(1, o.CancelTimes)) })
	add("disconnect", o.DisconnectAtMS, func(ctx context.Context) error {
		r.p.conn.close()
		return r.again(ctx, time.Duration(o.ReconnectAfterMS)*time.Millisecond)
	})
	add("stop the daemon", o.StopDaemonAtMS, func(ctx context.Context) error { return r.endDaemon(ctx, syscall.SIGTERM) })
	add("kill the daemon", o.KillDaemonAtMS, func(ctx context.Context) error { return r.endDaemon(ctx, syscall.SIGKILL) })
	add("step the clock", o.StepClockAtMS, func(ctx context.Context) error { return r.stepClock(ctx) })
	slices.SortStableFunc(list, func(a, b action) int { return int(a.at - b.at) })
	return list
}

// act waits for the time of an action, which counts from the start of the
// command, and does it.
func (r *run) act(ctx context.Context, a action) error {
	if err := suite.Sleep(ctx, time.Until(r.started().Add(a.at))); err != nil {
		return err
	}
	return a.do(ctx)
}

// announced waits until the command has printed what it does before it waits, if it
// does: the time that a case leaves for that is too short for a busy machine.
func (r *run) announced(ctx context.Context) {
	word := suite.Announcement(r.c.Command())
	if silent := r.c.Options.Stream != nil && !*r.c.Options.Stream; word == "" || silent {
		return
	}
	r.p.rec.wait(ctx, func(frames []frame) bool {
		return r.over(frames) || !r.p.conn.open() || slices.ContainsFunc(frames, func(f frame) bool {
			m, _ := f.value.(map[string]any)
			data, _ := m["data"].(string)
			return r.concerns(f) && typeIs(m, "tool_output_delta") && strings.Contains(data, word)
		})
	})
}

// started is when the client was told that the command runs; when it asked for
// it if it never was.
func (r *run) started() time.Time {
	frames, _ := r.p.rec.all()
	for _, f := range frames {
		if r.concerns(f) && typeIs(f.value, "tool_started") {
			return f.at
		}
	}
	return r.sent
}

func (r *run) send(message map[string]any) error {
	return r.p.conn.send(websocket.TextMessage, []byte(text(message)))
}

func (r *run) signal() error {
	name := r.c.Options.Signal
	if name == "" {
		name = "INT"
	}
	input := map[string]any{"message_type": "tool_input", "tool_call_id": r.id, "signal": strings.TrimPrefix(name, "SIG")}
	return r.send(input)
}

func (r *run) cancel(times int) error {
	for range times {
		if err := r.send(map[string]any{"message_type": "cancel", "tool_call_id": r.id}); err != nil {
			return err
		}
	}
	return nil
}

// again lets time pass, connects and asks for the same call.
func (r *run) again(ctx context.Context, after time.Duration) error {
	if err := suite.Sleep(ctx, after); err != nil {
		return err
	}
	if err := r.p.connect(ctx); err != nil {
		return err
	}
	return r.p.conn.send(websocket.TextMessage, r.request)
}

// endDaemon ends the daemon and, if the case says so, starts it anew and asks for
// the same call.
func (r *run) endDaemon(ctx context.Context, sig syscall.Signal) error {
	if err := r.p.daemon.stop(sig); err != nil {
		return err
	}
	<-r.p.conn.ended
	if !r.c.Options.RestartDaemon {
		return nil
	}
	if err := r.p.start(ctx); err != nil {
		return err
	}
	return r.p.conn.send(websocket.TextMessage, r.request)
}

// concerns reports whether a frame is about the call. Another may have had its id
// before.
func (r *run) concerns(f frame) bool {
	m, ok := f.value.(map[string]any)
	return ok && m["tool_call_id"] == r.id && f.conn == r.p.conn.name && !f.at.Before(r.sent)
}

// over reports whether the present life of the connection has the answer: the
// return, or an error that there is none.
func (r *run) over(frames []frame) bool {
	return slices.ContainsFunc(frames, func(f frame) bool {
		return r.concerns(f) && f.life == r.p.conn.life &&
			(isReturn(f.value) || typeIs(f.value, "error_message") && !typeIs(f.value, "error_message", "not_running"))
	})
}

// typeIs reports whether a value is a frame of a type, and an error of a type.
func typeIs(v any, kind string, errorType ...string) bool {
	m, _ := v.(map[string]any)
	return m["message_type"] == kind && (len(errorType) == 0 || m["error_type"] == errorType[0])
}

// finish waits for the answer, then until the daemon has nothing more to say
// about what was sent.
func (r *run) finish(ctx context.Context) {
	conn := r.p.conn
	r.p.rec.wait(ctx, func(frames []frame) bool { return r.over(frames) || !conn.open() })
	if r.p.daemon.alive() && conn.open() {
		nonce := "after " + r.id
		if r.send(map[string]any{"message_type": "ping", "nonce": nonce}) == nil {
			r.p.rec.wait(ctx, func(frames []frame) bool {
				return !conn.open() || slices.ContainsFunc(frames, func(f frame) bool {
					m, _ := f.value.(map[string]any)
					return f.conn == conn.name && f.life == conn.life && m["nonce"] == nonce
				})
			})
		}
	}
	frames, _ := r.p.rec.all()
	for _, f := range frames {
		if !r.concerns(f) {
			continue
		}
		r.about = append(r.about, f)
		if isReturn(f.value) {
			r.ret, _ = f.value.(map[string]any)
			r.returned = f.at
		}
	}
}
