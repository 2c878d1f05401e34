// Package server serves agents, approvers and observers over WebSocket and HTTP.
//
// It checks access, decodes frames, passes them to dispatch, and writes results at each client's own pace. It does not
// decide on calls.
package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/gorilla/websocket"
	"go.uber.org/zap"

	"github.com/toold/toold/internal/approval"
	"github.com/toold/toold/internal/codex"
	"github.com/toold/toold/internal/dispatch"
	"github.com/toold/toold/internal/journal"
	"github.com/toold/toold/message"
)

// Options configure a Server. Store, Metrics, Refused, AllowedHosts and AllowedOrigins are optional.
type Options struct {
	Dispatch *dispatch.Dispatcher
	Codex    *codex.Server
	// MCP serves a request of a Model Context Protocol client. Its body is already in memory.
	MCP       func(http.ResponseWriter, *http.Request, Token)
	Approvals *approval.Queue[message.ApprovalRequest]
	Journal   *journal.Journal
	Log       *zap.Logger
	Tokens    func() []Token // the valid tokens
	// Greet returns the hello_ack for a client in dir ("": none), without ConnID and Roles. After an error only
	// Workspace is valid: the canonical dir, or "" if there is none.
	Greet func(dir string) (message.HelloAck, error)
	// Question returns an approval request as text for a person.
	Question func(message.ApprovalRequest) string
	// Reload reads and applies the policy files. On error the previous policy remains in force.
	Reload func() (Reloaded, error)
	// Policy returns the result of the last reload.
	Policy func() Reloaded
	// Store returns why the team store lacks records, without confidential details; "" if it is up to date.
	Store func() string
	// Metrics serves GET /metrics, for observers and admins.
	Metrics http.Handler
	// Refused is called for each refused connection and request with the reason, one of the refused constants. It must
	// not block.
	Refused func(why string)

	AllowedHosts   []string // names of this machine other than loopback, without port
	OwnOrigins     []string // of our own pages, such as http://127.0.0.1:7717
	AllowedOrigins []string // of other pages that may connect

	Connections        int // maximum of all clients
	CallsPerConnection int // maximum of unanswered calls
	MaxFrameBytes      int64
	IncomingBytes      int64         // limit for incoming frames of all connections, and for unanswered requests; see budget
	OutboxBytes        int64         // how far a client may fall behind a stream before output is skipped
	Linger             time.Duration // how long an ended connection can be resumed
	Ping               time.Duration // between heartbeats
	Idle               time.Duration // silence after which a client is disconnected
}

// A Server accepts connections until Shutdown.
type Server struct {
	opt      Options
	http     *http.Server
	upgrader websocket.Upgrader
	incoming budget // for what is being received
	kept     budget // for unanswered requests over HTTP and of Codex
	hub      *hub
	buffers  sync.Pool // of *buffers

	strangers strangers

	mu           sync.Mutex
	sessions     map[*session]struct{}
	requests     map[string]int     // being served over HTTP, by name of the token
	items        map[*item]struct{} // unanswered items
	closing      bool
	resumeStates []resumeState  // of ended connections, latest last
	joined       sync.WaitGroup // counts the sessions
}

// New returns a Server.
func New(opt Options) *Server {
	s := &Server{opt: opt, sessions: make(map[*session]struct{}), requests: make(map[string]int), items: make(map[*item]struct{}), incoming: budget{left: opt.IncomingBytes}, kept: budget{left: opt.IncomingBytes}}
	s.hub = newHub(opt)
	s.buffers.New = func() any { return new(buffers) }
	s.upgrader = websocket.Upgrader{
		ReadBufferSize: 1024, WriteBufferSize: 4096, WriteBufferPool: &sync.Pool{},
		// checkOrigin has already checked it.
		CheckOrigin: func(*http.Request) bool { return true },
	}
	s.http = &http.Server{
		Handler:           s.handler(),
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       opt.Idle, // for requests; WebSocket connections set their own
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ConnContext:       withConn,
		ConnState:         s.strangers.follow,
		ErrorLog:          zap.NewStdLog(opt.Log.WithOptions(zap.IncreaseLevel(zap.ErrorLevel))),
	}
	return s
}

// Serve accepts connections from l until Shutdown. It may be called for several listeners.
func (s *Server) Serve(l net.Listener) error {
	err := s.http.Serve(lasting{l})
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// Shutdown closes the listeners, and each session with status 1001 after everything due to its client is written. When
// ctx ends, the remaining clients are disconnected; that is not an error.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	s.closing = true
	for ss := range s.sessions {
		ss.finish()
	}
	s.mu.Unlock()
	err := s.http.Shutdown(ctx) // does not wait for WebSocket connections
	if ctx.Err() != nil {
		err = s.http.Close()
	}
	left := make(chan struct{})
	// Ends with the last session.
	go func() { s.joined.Wait(); close(left) }()
	select {
	case <-left:
	case <-ctx.Done():
		s.mu.Lock()
		for ss := range s.sessions {
			ss.conn.Close()
		}
		s.mu.Unlock()
		<-left
	}
	return err
}

func (s *Server) serveSocket(w http.ResponseWriter, r *http.Request, token Token) {
	s.connect(w, r, token, (*session).run)
}

// connect upgrades a connection, and serves it with run in the background until the connection ends.
func (s *Server) connect(w http.ResponseWriter, r *http.Request, token Token, run func(*session)) {
	if why := s.mayConnect(token); why != "" {
		s.refuseBusy(w, why)
		return
	}
	conn, err := s.upgrader.Upgrade(hijacker{w, s.opt.MaxFrameBytes}, r, nil)
	if err != nil {
		return // Upgrade has sent the error
	}
	ss := newSession(s, conn, token)
	if why := s.add(ss); why != "" {
		s.refused(refusedLimit)
		ss.farewell(websocket.CloseTryAgainLater, why)
		conn.Close()
		return
	}
	// Ends with the connection. This goroutine would keep the buffers and the stack with which the request was read.
	go func() {
		defer s.joined.Done()
		defer s.remove(ss)
		ss.safely("", func() { run(ss) })
	}()
}

// Clients returns the number of WebSocket connections.
func (s *Server) Clients() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.sessions)
}

func (s *Server) mayConnect(token Token) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refusal(token)
}

// add registers a session, or returns why it is refused.
func (s *Server) add(ss *session) (why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if why = s.refusal(ss.token); why == "" {
		s.sessions[ss] = struct{}{}
		s.joined.Add(1)
	}
	return why
}

func (s *Server) remove(ss *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sessions, ss)
}

// kept returns how many connections are reserved for tokens that decide, so that agents and observers cannot lock out
// those who supervise them.
func kept(all int) int { return min((all+15)/16, all-1) }

// share returns the maximum number of connections of one token that does not decide, so that no client uses all.
func share(all int) int { return max((all-kept(all))*3/4, 1) }

// requestsPerConnection is how many requests over HTTP one token may have served at the same time for each connection
// that it may have. They are no connections: one of them may bring what others wait for, such as a person's answer.
const requestsPerConnection = 4

// admit counts a request over HTTP, which may wait long, until leave is called. It returns why it is refused, or "".
func (s *Server) admit(token Token) (leave func(), why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	own := s.requests[token.Name]
	if own >= requestsPerConnection*share(s.opt.Connections) {
		return nil, fmt.Sprintf("%d requests of the token %s wait already (limits.connections); try again when some are answered", own, token.Name)
	}
	s.requests[token.Name]++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.requests[token.Name]--
	}, ""
}

// refusal returns why a token may not connect now, or "". The caller holds mu.
func (s *Server) refusal(token Token) string {
	all, own, others := s.opt.Connections, 0, 0
	for ss := range s.sessions {
		if ss.token.Name == token.Name {
			own++
		}
		if !ss.token.decides() {
			others++
		}
	}
	switch {
	case s.closing:
		return "toold is stopping"
	case len(s.sessions) >= all:
		return fmt.Sprintf("%d clients are connected already (limits.connections); close one, or try again later", all)
	case token.decides():
		return ""
	case others >= all-kept(all):
		return fmt.Sprintf("%d agents and observers are connected already, and the rest of limits.connections is for approvers and admins; close one, or try again later", others)
	case own >= share(all):
		return fmt.Sprintf("the token %s has %d connections already, and more would keep other clients out (limits.connections); close one, or try again later", token.Name, own)
	}
	return ""
}
