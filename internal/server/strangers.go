package server

import (
	"context"
	"net"
	"net/http"
	"slices"
	"sync"
)

// mostStrangers bounds the connections without a session on which no request with a token is being answered: anyone on
// this machine can make them, and each takes a descriptor.
const mostStrangers = 256

// strangers are these connections, the oldest first.
type strangers struct {
	mu    sync.Mutex
	conns []net.Conn
}

// follow is the ConnState of an http.Server. It closes the oldest when there are too many.
func (s *strangers) follow(c net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew, http.StateIdle:
		s.add(c)
	case http.StateHijacked, http.StateClosed:
		s.drop(c)
	}
}

func (s *strangers) add(c net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.Contains(s.conns, c) {
		return
	}
	if s.conns = append(s.conns, c); len(s.conns) > mostStrangers {
		s.conns[0].Close()
		s.conns = slices.Delete(s.conns, 0, 1)
	}
}

func (s *strangers) drop(c net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conns = slices.DeleteFunc(s.conns, func(other net.Conn) bool { return other == c })
}

type connKey struct{}

// known takes out the connection of a request with a token.
func (s *strangers) known(r *http.Request) {
	if c, ok := r.Context().Value(connKey{}).(net.Conn); ok {
		s.drop(c)
	}
}

func withConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}
