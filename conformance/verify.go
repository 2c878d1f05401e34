//go:build linux

package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/gorilla/websocket"

	"github.com/toold/toold/conformance/suite"
)

// verify checks all that the case expects and returns what is wrong.
func (p *player) verify(ctx context.Context) []string {
	limit, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	e := p.c.Expect
	alternatives := []expectation{e}
	if len(e.AnyOf) > 0 {
		alternatives = e.AnyOf
	}
	settled := make(chan []string, 1)
	// Ends when no call is open any more, or after its patience.
	go func() {
		all, reasons := p.settle(ctx)
		settled <- reasons
		if all { // only the end of the connection can follow, or what another program does then
			time.AfterFunc(p.settleTime(), cancel)
		}
	}()
	matched := p.waitExpected(limit, e, alternatives)
	if e.MaxMS > 0 {
		p.late.Check("max_ms is", time.Since(p.begun), time.Duration(e.MaxMS)*time.Millisecond)
	}
	reasons := <-settled
	reasons = append(reasons, p.check(ctx, e)...)
	if len(e.AnyOf) > 0 && matched == nil {
		reasons = append(reasons, p.alternativeFailures(ctx, e)...)
	} else if len(e.AnyOf) > 0 {
		reasons = append(reasons, p.check(ctx, *matched)...)
	}
	reasons = append(reasons, p.checkDuplicates(e, matched)...)
	for _, text := range e.Invariants {
		reasons = append(reasons, p.invariant(ctx, text)...)
	}
	return append(reasons, p.rec.rules()...)
}

// settleTime is how long expected frames may take once no call is open. In a case that must fail they do not come.
func (p *player) settleTime() time.Duration {
	if p.c.MustFail != "" {
		return 5 * time.Second
	}
	return time.Minute
}

// alternativeFailures explains why no alternative matches.
func (p *player) alternativeFailures(ctx context.Context, e expectation) (reasons []string) {
	for i, a := range e.AnyOf {
		for _, why := range p.check(ctx, a) {
			reasons = append(reasons, fmt.Sprintf("alternative %d: %s", i+1, why))
		}
	}
	return reasons
}

// waitExpected waits until the frames of e and of one alternative have arrived, and returns that alternative; nil if
// limit ends first.
func (p *player) waitExpected(limit context.Context, e expectation, alternatives []expectation) (matched *expectation) {
	p.rec.wait(limit, func(frames []frame) bool {
		if p.missing(e, frames) != "" {
			return false
		}
		for i, a := range alternatives {
			if p.missing(a, frames) == "" && p.connStateReached(a) && p.connStateReached(e) {
				matched = &alternatives[i]
				return true
			}
		}
		return false
	})
	return matched
}

// connStateReached reports whether the connection is in the expected state, as far as that can change by waiting.
func (p *player) connStateReached(e expectation) bool {
	c := p.conns["a"]
	if wantsClose(e) {
		return c != nil && !c.open()
	}
	return e.Conn != "open" || c != nil && c.open()
}

// wantsClose reports whether the daemon has to close the connection.
func wantsClose(e expectation) bool {
	_, ok := e.Conn.(map[string]any)
	return ok
}

// missing names the first matcher without a frame of its own, "" if none is.
func (p *player) missing(e expectation, frames []frame) string {
	if why := p.missingPosts(e.Post, frames); why != "" {
		return why
	}
	place := assign
	if e.Ordered {
		place = assignInOrder
	}
	found := place(len(e.Frames), len(frames), func(m, f int) bool {
		return p.vars.match(e.Frames[m], frames[f].conn, frames[f].value) == ""
	})
	m := slices.Index(found, -1)
	if m < 0 {
		return ""
	}
	return fmt.Sprintf("no frame of its own for matcher %d: %s\n%s", m+1, text(e.Frames[m]), p.closest(e.Frames[m], frames))
}

// closest lists what was received, with the reason why it does not match.
func (p *player) closest(m matcher, frames []frame) string {
	var b bytes.Buffer
	fmt.Fprintf(&b, "received %d frames:", len(frames))
	for i, f := range frames {
		if i == 12 {
			fmt.Fprintf(&b, "\n  …")
			break
		}
		why := p.vars.match(m, f.conn, f.value)
		if why == "" {
			why = "matches"
		}
		fmt.Fprintf(&b, "\n  on %s: %.600s\n    %s", f.conn, text(f.value), why)
	}
	return b.String()
}

// text renders a value as JSON.
func text(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.Encode(v)
	return string(bytes.TrimSpace(b.Bytes()))
}

// settle waits until no call is open and every connection has received what was sent to it, so that unwanted frames
// would have arrived. all reports whether every call that was sent has ended.
func (p *player) settle(ctx context.Context) (all bool, reasons []string) {
	limit, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	reasons = p.flush(limit, "sent") // the daemon has read all that was sent
	if !p.daemon.alive() {
		return true, reasons
	}
	all = p.waitJournaled(limit)
	if p.repeated {
		// A repeated return leaves no trace in the journal: give it time.
		suite.Sleep(limit, 300*time.Millisecond)
	}
	switch {
	case p.yield != "": // the call continues after its answer
	case p.peer != nil && len(p.c.Expect.None) > 0:
		suite.Sleep(limit, 300*time.Millisecond) // unanswered calls stay open
	default:
		if err := p.waitReturned(limit); err != nil {
			reasons = append(reasons, err.Error())
		}
	}
	return all, append(reasons, p.flush(limit, "received")...)
}

// flush sends a ping on every connection and waits for the answers: a
// connection's frames are served in order.
func (p *player) flush(ctx context.Context, stage string) (reasons []string) {
	for name, c := range p.conns {
		if !c.open() || c.frozen.Load() || !p.daemon.alive() {
			continue
		}
		c.resume()
		nonce := matcher{"nonce": "all of " + name + " " + stage}
		if err := c.send(websocket.TextMessage, []byte(`{"message_type":"ping",`+text(nonce)[1:])); err != nil {
			continue // the connection is ending
		}
		err := p.rec.wait(ctx, func(frames []frame) bool {
			return !c.open() || slices.ContainsFunc(frames, func(f frame) bool {
				return f.conn == name && f.life == c.life && p.vars.match(nonce, "", f.value) == ""
			})
		})
		if err != nil {
			reasons = append(reasons, fmt.Sprintf("connection %s does not answer a ping any more", name))
		}
	}
	return reasons
}

// check compares an expectation with frames, connection, files and journal.
func (p *player) check(ctx context.Context, e expectation) (reasons []string) {
	frames, _ := p.rec.all()
	if why := p.missing(e, frames); why != "" {
		reasons = append(reasons, why)
	}
	for _, m := range e.None {
		for _, f := range frames {
			if p.vars.match(m, f.conn, f.value) == "" {
				reasons = append(reasons, fmt.Sprintf("a frame matches %s, which none may:\n  %.600s", text(m), text(f.value)))
			}
		}
	}
	if e.Conn != nil {
		reasons = append(reasons, p.checkConn(e.Conn)...)
	}
	if e.HTTPStatus != nil {
		reasons = append(reasons, p.checkStatus(e.HTTPStatus)...)
	}
	for name, want := range e.FS {
		if err := p.checkFile(name, want); err != nil {
			reasons = append(reasons, err.Error())
		}
	}
	return append(reasons, p.checkJournal(ctx, e)...)
}

// checkConn checks connection a.
func (p *player) checkConn(want any) []string {
	c := p.conns["a"]
	if c == nil {
		return []string{"connection a was never made"}
	}
	if want == "open" {
		if !c.open() {
			return []string{fmt.Sprintf("the connection is closed with %d, want it open", c.closeCode())}
		}
		return nil
	}
	m, ok := want.(map[string]any)
	if !ok || len(m) != 1 || m["close"] == nil {
		return []string{fmt.Sprintf("cannot check a connection for %s", text(want))}
	}
	if c.open() {
		return []string{fmt.Sprintf("the connection is open, want it closed with %s", text(m["close"]))}
	}
	if why := p.vars.matchPath("close", m["close"], map[string]any{"close": float64(c.closeCode())}); why != "" {
		return []string{"the close code " + why}
	}
	return nil
}

// checkStatus compares the statuses of the HTTP steps.
func (p *player) checkStatus(want any) (reasons []string) {
	list, isList := want.([]any)
	if isList && len(list) != len(p.statuses) || len(p.statuses) == 0 {
		return []string{fmt.Sprintf("there were %d HTTP steps, want %s", len(p.statuses), text(want))}
	}
	for i, got := range p.statuses {
		w := want
		if isList {
			w = list[i]
		}
		if why := p.vars.matchPath("status", w, map[string]any{"status": float64(got)}); why != "" {
			reasons = append(reasons, fmt.Sprintf("the status of HTTP step %d %s", i+1, why))
		}
	}
	return reasons
}

// checkFile compares a file of the workspace.
func (p *player) checkFile(name string, want any) error {
	path := filepath.Join(p.site.workspace, name)
	got, err := os.ReadFile(path)
	if want == "absent" {
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("file %s is there, want it absent; it holds %.200q", name, got)
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("file %s: %w", name, err)
	}
	frame := map[string]any{"content": string(got)}
	if m, ok := want.(map[string]any); ok && m["size"] != nil {
		frame, want = map[string]any{"content": float64(len(got))}, m["size"]
	}
	if why := p.vars.matchPath("content", want, frame); why != "" {
		return fmt.Errorf("file %s %s", name, why)
	}
	return nil
}

// checkDuplicates checks that no id got more returns on a connection than the case has matchers for it.
func (p *player) checkDuplicates(e expectation, matched *expectation) (reasons []string) {
	matchers := slices.Clone(e.Frames)
	if matched != nil && len(e.AnyOf) > 0 {
		matchers = append(matchers, matched.Frames...)
	}
	type place struct{ id, conn string }
	got := map[place]int{}
	frames, _ := p.rec.all()
	for _, f := range frames {
		m, _ := f.value.(map[string]any)
		if id, ok := returned(m); ok {
			got[place{id, f.conn}]++
		}
	}
	for at, n := range got {
		named, allowed := false, 0
		for _, m := range matchers {
			if id, ok := returned(m); ok && id == at.id {
				named = true
				if m["$conn"] == nil || m["$conn"] == at.conn {
					allowed++
				}
			}
		}
		if named && n > allowed {
			reasons = append(reasons, fmt.Sprintf("%d returns for %s on connection %s, want at most %d", n, at.id, at.conn, allowed))
		}
	}
	return reasons
}
