package server

import (
	"math"
	"slices"
	"time"

	"github.com/toold/toold/internal/dispatch"
	"github.com/toold/toold/tools"
)

const (
	maxTrails = 256  // of ended connections that are remembered
	maxPieces = 256  // of output, of a connection
	maxEnds   = 1024 // of calls, of a connection

	takeOver = 5 * time.Second // how long a connection that is ending may take, for another that may go on in its place
)

type piece struct {
	seq    int64 // endless in a binary frame, which has none
	call   dispatch.Key
	stream tools.Stream
	from   int64 // how far the client had the stream before
}

// noSeq is the number of a piece that has none.
const noSeq = math.MaxInt64

type ending struct {
	seq  int64 // of the piece before
	call dispatch.Key
	at   time.Time
}

// history is what a connection wrote last. It belongs to its writer.
type history struct {
	pieces []piece
	cut    bool // there were pieces before
	ends   []ending
	lost   ending // the last one before those in ends; the zero value when there is none
}

func (h *history) wrote(p piece) {
	if len(h.pieces) == maxPieces {
		h.pieces = append(h.pieces[:0], h.pieces[maxPieces/2:]...)
		h.cut = true
	}
	h.pieces = append(h.pieces, p)
}

func (h *history) told(e ending) {
	if len(h.ends) == maxEnds {
		h.lost = h.ends[maxEnds/2-1]
		h.ends = append(h.ends[:0], h.ends[maxEnds/2:]...)
	}
	h.ends = append(h.ends, e)
}

// trail is what an ended connection leaves for the one that goes on in its place:
// the calls whose end it had still to write, and what it wrote last.
type trail struct {
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

// trail is what the session leaves. Its writer has ended.
func (ss *session) trail() trail {
	t := trail{conn: ss.id, client: ss.who.Name, until: time.Now().Add(ss.srv.opt.Linger), history: ss.last}
	if time.Since(t.lost.at) > ss.srv.opt.Idle {
		t.lost = ending{} // the client has answered since, and so has received it
	}
	for _, f := range ss.following() {
		t.calls = append(t.calls, position{f.watcher.Call().Key(), f.shown, f.offsets})
	}
	return t
}

// knows reports whether no end is forgotten that a client may lack which has
// received everything up to the piece with number seq.
func (t *trail) knows(seq int64) bool { return t.lost.at.IsZero() || t.lost.seq < seq }

// after returns the positions of a client that has received everything up to the piece with number seq. Ends
// that it may not have received are sent again.
func (t *trail) after(seq int64) []position {
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
		if i == 0 && t.cut { // it is not known what the client has
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

func (s *Server) park(t trail) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trails = slices.DeleteFunc(s.trails, func(o trail) bool { return time.Now().After(o.until) })
	if len(s.trails) == maxTrails {
		s.trails = slices.Delete(s.trails, 0, 1)
	}
	s.trails = append(s.trails, t)
}

// unpark takes the trail of a client's connection, by default the latest.
func (s *Server) unpark(client, conn string) (trail, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, t := range slices.Backward(s.trails) {
		if t.client == client && (conn == "" || t.conn == conn) && time.Now().Before(t.until) {
			s.trails = slices.Delete(s.trails, i, i+1)
			return t, true
		}
	}
	return trail{}, false
}

// hangUp waits for the trail of the connection in whose place a client goes on. A named one is
// ended for that; another may be in use by another program, so it must be ending already.
// Two connections that each want to go on in the other's place both end.
func (s *Server) hangUp(client, conn string, but *session) {
	most := takeOver
	if conn != "" {
		most = s.opt.Idle // as long as a client may take to read what it gets
	}
	guard := time.NewTimer(most)
	defer guard.Stop()
	for _, old := range s.earlier(client, conn, but) {
		if conn != "" {
			notify(old.hungUp)
			old.conn.Close()
		}
		select {
		case <-old.over:
		case <-but.hungUp:
			return
		case <-guard.C:
			return
		}
	}
}

func (s *Server) earlier(client, conn string, but *session) (found []*session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for ss := range s.sessions {
		if ss != but && ss.who.Name == client && (ss.id == conn || conn == "" && ss.leaving.Load()) {
			found = append(found, ss)
		}
	}
	return found
}

// resume finds where an earlier connection of this client ended; ok is false when
// that is not known. goOn then follows its calls from there.
func (ss *session) resume(conn string, last int64) (goOn func(), ok bool) {
	if !ss.who.has(Agent) {
		return nil, false
	}
	ss.srv.hangUp(ss.who.Name, conn, ss)
	t, ok := ss.srv.unpark(ss.who.Name, conn)
	if !ok || !t.knows(last) {
		return nil, false
	}
	return func() {
		for _, p := range t.after(last) {
			ss.followFrom(ss.srv.opt.Dispatch.Rejoin(p.call, ss.poke), p)
		}
	}, true
}

// followFrom attaches the session to a call in the middle of its output, unless it follows the background
// call already or has sent its end.
func (ss *session) followFrom(w *dispatch.Watcher, p position) {
	c := w.Call()
	ss.mu.Lock()
	known := ss.feed(c)
	fresh := !ss.left && known == nil && !ss.met[p.call]
	switch {
	case fresh:
		ss.feeds = append(ss.feeds, &feed{watcher: w, shown: p.shown, offsets: p.offsets})
		if c.BackgroundOf() != nil {
			ss.met[c.Key()] = true
		}
	case known != nil && p.shown && !known.shown:
		known.shown, known.offsets = true, p.offsets
	}
	ss.mu.Unlock()
	if !fresh {
		w.Detach()
	}
	if c.HasNews() { // else it wakes the writer when it has some
		ss.poke()
	}
}
