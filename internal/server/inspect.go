package server

import (
	"net"
	"net/http"
)

// Why a connection or request was refused.
const (
	refusedLimit  = "limit"  // too many connections, or toold stops
	refusedToken  = "token"  // none, or one that is not in force
	refusedRole   = "role"   // the token does not allow it
	refusedHost   = "host"   // the name of another machine
	refusedOrigin = "origin" // a foreign page
	refusedOther  = "other"
)

func refusalOf(status int) string {
	switch status {
	case http.StatusUnauthorized:
		return refusedToken
	case http.StatusForbidden:
		return refusedRole
	}
	return refusedOther
}

func (s *Server) refused(why string) {
	if s.opt.Refused != nil {
		s.opt.Refused(why)
	}
}

func (s *Server) serveMetrics(w http.ResponseWriter, r *http.Request, _ Token) {
	if s.opt.Metrics == nil {
		http.NotFound(w, r)
		return
	}
	s.opt.Metrics.ServeHTTP(w, r)
}

// inspector needs an admin's token, on the Unix socket: a profile shows what other clients
// do, and takes a processor.
func inspector(s *Server, r *http.Request) (Token, int) {
	who, status := access(holder).of(Admin)(s, r)
	if _, ok := r.Context().Value(http.LocalAddrContextKey).(*net.UnixAddr); status == http.StatusOK && !ok {
		return Token{}, http.StatusMisdirectedRequest
	}
	return who, status
}

func profile(serve http.HandlerFunc) func(*Server, http.ResponseWriter, *http.Request, Token) {
	return func(_ *Server, w http.ResponseWriter, r *http.Request, _ Token) { serve(w, r) }
}
