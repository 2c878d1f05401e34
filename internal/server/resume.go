package server

import (
	"math"
	"slices"
	"time"

	"github.com/toold/toold/internal/dispatch"
	"github.com/toold/toold/tools"
)

const (
	maxResumeStates = 256  // ended connections that can be resumed
	maxPieces       = 256  // pieces of output, per connection
	maxEnds         = 1024 // ends of calls, per connection

	takeOver = 5 * time.Second // how long a resuming client waits for its ending connection
)

type piece struct {
	seq    int64 // event_seq; noSeq in a binary frame, which has none
	call   dispatch.Key
	stream tools.Stream
	from   int64 // the client's offset in the stream before this piece
}

// noSeq is the seq of a piece in a binary frame.
const noSeq = math.MaxInt64

type ending struct {
	seq  int64 // event_seq of the last piece before
	call dispatch.Key
	at   time.Time
}

// history records what a connection wrote last. Only its writer uses it.
type history struct {
	pieces []piece
	cut    bool // earlier pieces were dropped
	ends   []ending
	lost   ending // the last dropped one; may be zero
}

func (h *history) wrote(p piece) {
	if len(h.pieces) == maxPieces {
		h.pieces = append(h.pieces[:0], h.pieces[maxPieces/2:]...)
		h.cut = true
	}
	h.pieces = append(h.pieces, p)
}

func (h *history) ended(e ending) {
	if len(h.ends) == maxEnds {
		h.lost = h.ends[maxEnds/2-1]
		h.ends = append(h.ends[:0], h.ends[maxEnds/2:]...)
	}
	h.ends = append(h.ends, e)
}

// resumeState is the state for a client that resumes an ended connection: the calls whose returns were not written,
// and what was written last.
type resumeState struct {
	conn, client string
	until        time.Time
	calls        []position
	history
}

type position struct {
	call    dispatch.Key
	shown   bool
	offsets [2]int64
}

// resumeState must not be called before the session's writer has ended.
func (ss *session) resumeState() resumeState {
	t := resumeState{conn: ss.id, client: ss.token.Name, until: time.Now().Add(ss.srv.opt.Linger), history: ss.last}
	if time.Since(t.lost.at) > ss.srv.opt.Idle {
		t.lost = ending{} // received: the connection has been alive since
	}
	for _, f := range ss.following() {
		t.calls = append(t.calls, position{f.watcher.Call().Key(), f.shown, f.offsets})
	}
	return t
}

// knows reports whether ends contains every end that a client with event_seq seq may lack.
func (t *resumeState) knows(seq int64) bool { return t.lost.at.IsZero() || t.lost.seq < seq }

// after returns where a client that received everything up to seq continues. Ends that it may lack are sent again.
func (t *resumeState) after(seq int64) []position {
	calls := slices.Clone(t.calls)
	at := func(key dispatch.Key) int {
		return slices.IndexFunc(calls, func(p position) bool { return p.call == key })
	}
	for i, p := range slices.Backward(t.pieces) {
		if p.seq <= seq {
			break
		}
		if known := at(p.call); known >= 0 {
			calls[known].offsets[p.stream] = p.from
		}
		if i == 0 && t.cut { // the client's position is unknown
			for n := range calls {
				calls[n].offsets = [2]int64{}
			}
		}
	}
	for _, e := range slices.Backward(t.ends) {
		if e.seq < seq {
			break
		}
		if at(e.call) < 0 {
			calls = append(calls, position{call: e.call})
		}
	}
	return calls
}

func (s *Server) park(t resumeState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.resumeStates = slices.DeleteFunc(s.resumeStates, func(o resumeState) bool { return time.Now().After(o.until) })
	if len(s.resumeStates) == maxResumeStates {
		s.resumeStates = slices.Delete(s.resumeStates, 0, 1)
	}
	s.resumeStates = append(s.resumeStates, t)
}

// unpark removes and returns the state of a client's connection, or of its latest one if conn is "".
func (s *Server) unpark(client, conn string) (resumeState, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, t := range slices.Backward(s.resumeStates) {
		isMeant := t.client == client && (conn == "" || t.conn == conn)
		if isMeant && time.Now().Before(t.until) {
			s.resumeStates = slices.Delete(s.resumeStates, i, i+1)
			return t, true
		}
	}
	return resumeState{}, false
}

// hangUp waits until the connection to resume has stored its state. It closes a named connection. An unnamed one must
// already be ending, since it may belong to another program. Two connections that resume each other both end.
func (s *Server) hangUp(client, conn string, but *session) {
	most := takeOver
	if conn != "" {
		most = s.opt.Idle // the time that a client has to read
	}
	over := time.After(most)
	for _, old := range s.earlier(client, conn, but) {
		if conn != "" {
			notify(old.hungUp)
			old.conn.Close()
		}
		select {
		case <-old.over:
		case <-but.hungUp:
			return
		case <-over:
			return
		}
	}
}

func (s *Server) earlier(client, conn string, but *session) (found []*session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for ss := range s.sessions {
		isMeant := ss.id == conn || conn == "" && ss.leaving.Load()
		if isMeant && ss != but && ss.token.Name == client {
			found = append(found, ss)
		}
	}
	return found
}

// resume finds the state of an earlier connection; ok is false if it is unknown. goOn then follows that connection's
// calls.
func (ss *session) resume(conn string, last int64) (goOn func(), ok bool) {
	if !ss.token.has(Agent) {
		return nil, false
	}
	ss.srv.hangUp(ss.token.Name, conn, ss)
	t, ok := ss.srv.unpark(ss.token.Name, conn)
	if !ok || !t.knows(last) {
		return nil, false
	}
	return func() {
		for _, p := range t.after(last) {
			ss.followFrom(ss.srv.opt.Dispatch.Rejoin(p.call, ss.poke), p, func(*feed) {})
		}
	}, true
}

// followFrom attaches the session to a call at a position, unless it already follows that background call or has sent
// its end. note changes the feed.
func (ss *session) followFrom(w *dispatch.Watcher, p position, note func(*feed)) {
	c := w.Call()
	ss.mu.Lock()
	known := ss.feed(c)
	fresh := !ss.left && known == nil && !ss.met[p.call]
	switch {
	case fresh:
		known = &feed{watcher: w, shown: p.shown, offsets: p.offsets}
		ss.feeds = append(ss.feeds, known)
		if c.BackgroundOf() != nil {
			ss.met[c.Key()] = true
		}
	case known != nil && p.shown && !known.shown:
		known.shown, known.offsets = true, p.offsets
	}
	if known != nil {
		note(known)
	}
	ss.mu.Unlock()
	if !fresh {
		w.Detach()
	}
	if c.HasNews() { // otherwise the call wakes the writer later
		ss.poke()
	}
}
