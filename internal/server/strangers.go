package server

import (
	"context"
	"net"
	"net/http"
	"slices"
	"sync"
)

// mostStrangers limits the connections without a session that are not serving a request with a token: anyone on this
// machine can open them, and each uses a file descriptor.
const mostStrangers = 256

// strangers lists these connections, oldest first.
type strangers struct {
	mu    sync.Mutex
	conns []net.Conn
}

// follow is the ConnState of an http.Server. It closes the oldest of too many connections.
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

// known removes the connection of a request that has a valid token.
func (s *strangers) known(r *http.Request) {
	if c, ok := r.Context().Value(connKey{}).(net.Conn); ok {
		s.drop(c)
	}
}

func withConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}
