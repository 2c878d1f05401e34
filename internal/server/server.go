// Package server speaks to agents, approvers and observers over WebSocket.
//
// It decides nothing about calls: it checks who may speak, decodes what they
// say, hands it to dispatch, and writes what comes back at each client's own
// pace.
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

// Options is what a Server works with. All fields but AllowedHosts and
// AllowedOrigins are needed.
type Options struct {
	Dispatch *dispatch.Dispatcher
	Codex    *codex.Server
	// MCP answers a client of the Model Context Protocol, whose body has been read.
	MCP       func(http.ResponseWriter, *http.Request, Token)
	Approvals *approval.Queue[message.ApprovalRequest]
	Journal   *journal.Journal
	Log       *zap.Logger
	Tokens    func() []Token // those in force, as they are now
	// Greet answers a client that wants to work in dir, "" for none: without ConnID and
	// Roles. The error says why it cannot.
	Greet func(dir string) (message.HelloAck, error)
	// Question describes a call to a person.
	Question func(message.ApprovalRequest) string
	// Reload takes up the policy files as they are now. The error says why the
	// policy that held goes on holding.
	Reload func() (Reloaded, error)
	// Policy returns the result of the last reload.
	Policy func() Reloaded
	// Store says why the team store has not all records, in words that anybody may read; "" =
	// it has. nil = there is none.
	Store func() string
	// Metrics answers those who may observe; nil = there are none.
	Metrics http.Handler
	// Refused is called for each connection and request that is refused, with one of a few
	// words of the package for why; nil = it is not called. It must not block.
	Refused func(why string)

	AllowedHosts   []string // names of this machine other than the loopback ones, without port
	OwnOrigins     []string // origins of our own pages, e.g. http://127.0.0.1:7717
	AllowedOrigins []string // whole origins of further pages that may connect

	Connections        int // at once, of all clients
	CallsPerConnection int // unanswered at once
	MaxFrameBytes      int64
	IncomingBytes      int64         // of frames being received, over all connections; see budget
	OutboxBytes        int64         // how far a reader may fall behind a stream before it skips ahead
	Linger             time.Duration // how long another connection may go on where one ended
	Ping               time.Duration // between heartbeats
	Idle               time.Duration // silence after which a peer is given up
}

// A Server accepts connections until Shutdown. Make it with New.
type Server struct {
	opt      Options
	http     *http.Server
	upgrader websocket.Upgrader
	incoming budget
	hub      *hub
	buffers  sync.Pool // of *buffers

	mu       sync.Mutex
	sessions map[*session]struct{}
	closing  bool
	trails   []trail        // of ended connections, the latest last
	joined   sync.WaitGroup // one per session
}

// New returns a Server that serves nothing yet.
func New(opt Options) *Server {
	s := &Server{opt: opt, sessions: make(map[*session]struct{}), incoming: budget{left: opt.IncomingBytes}}
	s.hub = newHub(opt)
	s.buffers.New = func() any { return new(buffers) }
	s.upgrader = websocket.Upgrader{
		ReadBufferSize: 4096, WriteBufferSize: 4096, WriteBufferPool: &sync.Pool{},
		// Origin has been checked before the upgrade, by guard.
		CheckOrigin: func(*http.Request) bool { return true },
	}
	s.http = &http.Server{
		Handler:           s.handler(),
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       opt.Idle, // of a whole request; an upgraded connection has its own
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          zap.NewStdLog(opt.Log.WithOptions(zap.IncreaseLevel(zap.ErrorLevel))),
	}
	return s
}

// Serve accepts connections from l until Shutdown. It may be called for several
// listeners.
func (s *Server) Serve(l net.Listener) error {
	err := s.http.Serve(l)
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// Shutdown closes the listeners, and each session with 1001 once it has written what it owes.
// When ctx ends, clients that have not read that are cut off, which is no error.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	s.closing = true
	for ss := range s.sessions {
		ss.finish()
	}
	s.mu.Unlock()
	err := s.http.Shutdown(ctx) // does not know hijacked connections
	if ctx.Err() != nil {
		err = s.http.Close()
	}
	left := make(chan struct{})
	// Ends when every session has ended; each ends when its connection is closed.
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

func (s *Server) serveSocket(w http.ResponseWriter, r *http.Request, who Token) {
	s.connect(w, r, who, (*session).run)
}

// connect upgrades a connection and has run serve it, which returns when it has ended.
func (s *Server) connect(w http.ResponseWriter, r *http.Request, who Token, run func(*session)) {
	if why := s.mayConnect(who); why != "" {
		s.refused(refusedLimit)
		w.Header().Set("Retry-After", "1")
		http.Error(w, why, http.StatusServiceUnavailable)
		return
	}
	conn, err := s.upgrader.Upgrade(hijacker{w, s.opt.MaxFrameBytes}, r, nil)
	if err != nil {
		return // Upgrade has answered
	}
	ss := newSession(s, conn, who)
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

func (s *Server) mayConnect(who Token) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refusal(who)
}

// add counts a session, or returns why it may not be served.
func (s *Server) add(ss *session) (why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if why = s.refusal(ss.who); why == "" {
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

// kept returns how many of all connections only tokens that decide may use, so that agents
// and observers cannot lock out those who watch over them.
func kept(all int) int { return min((all+15)/16, all-1) }

// share returns how many connections one token that does not decide may have, so that no
// client takes the places of all others.
func share(all int) int { return max((all-kept(all))*3/4, 1) }

// refusal returns why a token may not connect now, or "". Called with mu held.
func (s *Server) refusal(who Token) string {
	all, own, others := s.opt.Connections, 0, 0
	for ss := range s.sessions {
		if ss.who.Name == who.Name {
			own++
		}
		if !ss.who.decides() {
			others++
		}
	}
	switch {
	case s.closing:
		return "toold is stopping"
	case len(s.sessions) >= all:
		return fmt.Sprintf("%d clients are connected already (limits.connections); close one, or try again later", all)
	case who.decides():
		return ""
	case others >= all-kept(all):
		return fmt.Sprintf("%d agents and observers are connected already, and the rest of limits.connections is for approvers and admins; close one, or try again later", others)
	case own >= share(all):
		return fmt.Sprintf("the token %s has %d connections already, and more would keep other clients out (limits.connections); close one, or try again later", who.Name, own)
	}
	return ""
}
