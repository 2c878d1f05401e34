// Package codex implements the exec-server protocol of Codex: unmodified Codex runs commands and opens files in toold.
//
// A process is a call of the tool bash; a change to a file is a call of write_file or bash. Consecutive reads are
// recorded as one call (dispatch.Look). Unknown requests are refused. A session outlives its connection for
// Options.Linger.
package codex

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/toold/toold/internal/dispatch"
	"github.com/toold/toold/message"
)

// Options configures a Server. All fields are required.
type Options struct {
	Dispatch  *dispatch.Dispatcher
	Workspace string        // canonical; Codex's working directory
	Home      string        // home directory of the user
	Linger    time.Duration // lifetime without a connection; negative: unlimited
	// Fault is called with the value of a panic. It returns the text for the client.
	Fault func(panicked any) string
}

// Limits for one client.
const (
	maxSessions  = 64  // sessions without a connection
	maxProcesses = 256 // processes of a session, including ended ones whose output was read
	maxRequests  = 64  // per connection: unanswered requests that may block, and as many other unwritten answers
	maxLarge     = 4   // of those, requests for content or lists of files
	maxContents  = 8   // such requests of all connections: their answers are in memory until they are written
	maxRequestID = 256 // bytes
)

// A Server has the sessions of all clients.
type Server struct {
	opt   Options
	pumps sync.WaitGroup // goroutines that run process.pump

	mu       sync.Mutex
	sessions map[string]*session
	contents map[string]chan struct{} // by client; one element per request for content
	closed   bool
}

// New returns a Server. The caller must call Close.
func New(o Options) *Server {
	return &Server{opt: o, sessions: make(map[string]*session), contents: make(map[string]chan struct{})}
}

// Close drops all sessions and waits for their goroutines. All connections must be closed before.
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

// contentsOf returns the slots that the client's connections share.
func (s *Server) contentsOf(client string) chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.contents[client] == nil {
		s.contents[client] = make(chan struct{}, maxContents)
	}
	return s.contents[client]
}

// openSession returns the client's session with the id resume or, if that is "", a new one.
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

// evict drops the client's sessions that have been without a connection longest, so that there is room for one more.
// The caller holds mu.
func (s *Server) evict(client string) {
	detached := maps.Clone(s.sessions)
	maps.DeleteFunc(detached, func(_ string, ss *session) bool { return ss.client != client || ss.detachedAt().IsZero() })
	for len(detached) >= maxSessions {
		idle := oldest(detached, (*session).detachedAt)
		if idle == nil { // the others have a connection again
			return
		}
		delete(detached, idle.id)
		delete(s.sessions, idle.id)
		idle.end()
	}
}

// oldest returns the item with the earliest nonzero time, or the zero T.
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
