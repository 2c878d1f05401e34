// Package codex implements the exec-server protocol of Codex: stock Codex runs its commands and opens its files in
// toold.
//
// A process is a call of the tool bash, a change of a file a call of write_file or bash. Consecutive reads are recorded
// as one call (dispatch.Look). Anything unknown is refused. A session outlives its connection for Options.Linger.
package codex

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/toold/toold/internal/dispatch"
	"github.com/toold/toold/message"
)

// Options configure a Server. All are required.
type Options struct {
	Dispatch  *dispatch.Dispatcher
	Workspace string        // canonical; the working directory of Codex
	Home      string        // of the user
	Linger    time.Duration // without a connection; negative: unlimited
	// Fault receives the value of a panic and returns the text for the client.
	Fault func(panicked any) string
}

// Limits per client.
const (
	maxSessions  = 64  // without a connection
	maxProcesses = 256 // of a session, with ended ones whose output was read
	maxRequests  = 64  // of a connection, that may block, with unwritten answers; and as many other unwritten answers
	maxLarge     = 4   // of these, with content or lists of files
)

// A Server contains the sessions.
type Server struct {
	opt   Options
	pumps sync.WaitGroup // one per pump

	mu       sync.Mutex
	sessions map[string]*session
	closed   bool
}

// New returns a Server without sessions.
func New(o Options) *Server {
	return &Server{opt: o, sessions: make(map[string]*session)}
}

// Close drops all sessions and waits for their goroutines. No connection may be left.
func (s *Server) Close() {
	s.mu.Lock()
	s.closed = true
	all := slices.Collect(maps.Values(s.sessions))
	s.mu.Unlock()
	for _, ss := range all {
		s.drop(ss)
	}
	s.pumps.Wait()
}

// openSession returns the session with the id resume, or a new one if it is "".
func (s *Server) openSession(client, resume string) (*session, *rpcError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, refuse("toold is stopping")
	}
	if resume != "" {
		if ss := s.sessions[resume]; ss != nil && ss.client == client {
			return ss, nil
		}
		return nil, refuse("no session %q: it has ended, or toold was restarted; those of its commands that still run are stopped soon", resume)
	}
	s.evict(client)
	ss := &session{
		srv: s, id: message.NewID("codex"), client: client, dropped: make(chan struct{}),
		processes: make(map[string]*process), calls: make(map[string]int), series: make(chan *dispatch.Look, 1),
	}
	ss.series <- nil
	s.sessions[ss.id] = ss
	return ss, nil
}

// evict drops the client's sessions that are longest without a connection, until it may have one more. The caller
// holds mu.
func (s *Server) evict(client string) {
	detached := maps.Clone(s.sessions)
	maps.DeleteFunc(detached, func(_ string, ss *session) bool { return ss.client != client || ss.detachedAt().IsZero() })
	for len(detached) >= maxSessions {
		idle := oldest(detached, (*session).detachedAt)
		if idle == nil { // they are attached meanwhile
			return
		}
		delete(detached, idle.id)
		delete(s.sessions, idle.id)
		idle.end()
	}
}

// oldest returns the item with the earliest time, without zero times; or the zero T.
func oldest[T any](all map[string]T, at func(T) time.Time) (first T) {
	var since time.Time
	for _, item := range all {
		if t := at(item); !t.IsZero() && (since.IsZero() || t.Before(since)) {
			first, since = item, t
		}
	}
	return first
}

// drop removes a session. Its calls continue for their linger time.
func (s *Server) drop(ss *session) {
	s.mu.Lock()
	delete(s.sessions, ss.id)
	s.mu.Unlock()
	ss.end()
}
