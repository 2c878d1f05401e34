// Package server serves agents, approvers and observers over WebSocket and HTTP.
//
// It checks access, decodes frames, passes them to dispatch, and writes results at each client's
// own pace. It makes no decisions about calls.
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

// Options configure a Server. Store, Metrics, Refused, AllowedHosts and AllowedOrigins are
// optional.
type Options struct {
	Dispatch *dispatch.Dispatcher
	Codex    *codex.Server
	// MCP answers a Model Context Protocol client, whose body has been read.
	MCP       func(http.ResponseWriter, *http.Request, Token)
	Approvals *approval.Queue[message.ApprovalRequest]
	Journal   *journal.Journal
	Log       *zap.Logger
	Tokens    func() []Token // those in force now
	// Greet answers a client in dir, "" for none, without ConnID and Roles. The error says
	// why it cannot; Workspace is the canonical dir then, "" if there is none.
	Greet func(dir string) (message.HelloAck, error)
	// Question describes a call to a person.
	Question func(message.ApprovalRequest) string
	// Reload reads and applies the policy files. After an error the last valid policy stays in force.
	Reload func() (Reloaded, error)
	// Policy returns the last reload's result.
	Policy func() Reloaded
	// Store returns why the team store lacks records, for anyone to read; "": it has all.
	Store func() string
	// Metrics serves observers.
	Metrics http.Handler
	// Refused is called for each refused connection and request, with one of the refused constants.
	// It must not block.
	Refused func(why string)

	AllowedHosts   []string // names of this machine besides the loopback ones, without port
	OwnOrigins     []string // of our own pages, such as http://127.0.0.1:7717
	AllowedOrigins []string // of other pages that may connect

	Connections        int // at a time, of all clients
	CallsPerConnection int // unanswered at a time
	MaxFrameBytes      int64
	IncomingBytes      int64         // of frames being received, over all connections; see budget
	OutboxBytes        int64         // how far a reader may fall behind a stream before it skips ahead
	Linger             time.Duration // how long an ended connection can be resumed
	Ping               time.Duration // between heartbeats
	Idle               time.Duration // silence after which a peer is disconnected
}

// A Server accepts connections until Shutdown.
type Server struct {
	opt      Options
	http     *http.Server
	upgrader websocket.Upgrader
	incoming budget
	hub      *hub
	buffers  sync.Pool // of *buffers

	strangers strangers

	mu           sync.Mutex
	sessions     map[*session]struct{}
	items        map[*item]struct{} // unanswered ones
	closing      bool
	resumeStates []resumeState  // of ended connections, the latest last
	joined       sync.WaitGroup // one per session
}

// New returns a Server.
func New(opt Options) *Server {
	s := &Server{opt: opt, sessions: make(map[*session]struct{}), items: make(map[*item]struct{}), incoming: budget{left: opt.IncomingBytes}}
	s.hub = newHub(opt)
	s.buffers.New = func() any { return new(buffers) }
	s.upgrader = websocket.Upgrader{
		ReadBufferSize: 4096, WriteBufferSize: 4096, WriteBufferPool: &sync.Pool{},
		// checkOrigin has checked the origin before the upgrade.
		CheckOrigin: func(*http.Request) bool { return true },
	}
	s.http = &http.Server{
		Handler:           s.handler(),
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       opt.Idle, // of requests; upgraded connections have their own
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ConnContext:       withConn,
		ConnState:         s.strangers.follow,
		ErrorLog:          zap.NewStdLog(opt.Log.WithOptions(zap.IncreaseLevel(zap.ErrorLevel))),
	}
	return s
}

// Serve accepts connections from l until Shutdown. It may serve several listeners.
func (s *Server) Serve(l net.Listener) error {
	err := s.http.Serve(lasting{l})
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// Shutdown closes the listeners, and each session with 1001 once it has written what it owes. When
// ctx ends, slow readers are disconnected, which is no error.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	s.closing = true
	for ss := range s.sessions {
		ss.finish()
	}
	s.mu.Unlock()
	err := s.http.Shutdown(ctx) // does not include hijacked connections
	if ctx.Err() != nil {
		err = s.http.Close()
	}
	left := make(chan struct{})
	// Ends with the last session, when its connection is closed.
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

// connect upgrades a connection and has run serve it, which returns when it has ended.
func (s *Server) connect(w http.ResponseWriter, r *http.Request, token Token, run func(*session)) {
	if why := s.mayConnect(token); why != "" {
		s.refused(refusedLimit)
		w.Header().Set("Retry-After", "1")
		http.Error(w, why, http.StatusServiceUnavailable)
		return
	}
	conn, err := s.upgrader.Upgrade(hijacker{w, s.opt.MaxFrameBytes}, r, nil)
	if err != nil {
		return // Upgrade has answered
	}
	ss := newSession(s, conn, token)
	if why := s.add(ss); why != "" {
		s.refused(refusedLimit)
		ss.farewell(websocket.CloseTryAgainLater, why)
		conn.Close()
		return
	}
	defer s.joined.Done()
	defer s.remove(ss)
	run(ss)
}

// Clients counts the connections.
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

// add counts a session, or returns why it may not be served.
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

// kept returns how many of all connections are reserved for tokens that decide, so that agents and
// observers cannot lock out those who supervise them.
func kept(all int) int { return min((all+15)/16, all-1) }

// share bounds the connections of one token that does not decide, so that no client takes all.
func share(all int) int { return max((all-kept(all))*3/4, 1) }

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
