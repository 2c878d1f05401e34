package server

import (
	"io"
	"net"
	"net/http"
	"time"
)

// Reasons for refusals.
const (
	refusedLimit  = "limit"
	refusedToken  = "token"
	refusedRole   = "role"
	refusedHost   = "host"
	refusedOrigin = "origin"
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

// inspector requires an admin's token on the Unix socket, because a profile reveals what other clients do, and uses
// CPU time.
func inspector(s *Server, r *http.Request) (Token, int) {
	token, status := access(tokenOf).of(Admin)(s, r)
	if _, ok := r.Context().Value(http.LocalAddrContextKey).(*net.UnixAddr); status == http.StatusOK && !ok {
		return Token{}, http.StatusMisdirectedRequest
	}
	return token, status
}

func profile(serve http.HandlerFunc) func(*Server, http.ResponseWriter, *http.Request, Token) {
	return func(_ *Server, w http.ResponseWriter, r *http.Request, _ Token) { serve(w, r) }
}

// Reloaded describes the policy in force.
type Reloaded struct {
	Policy   string   `json:"policy"` // path or name
	Warnings []string `json:"warnings,omitempty"`
	Error    string   `json:"error,omitempty"` // why the policy on disk is not in force
}

// serveReload answers with status 422 if the policy on disk has errors.
func (s *Server) serveReload(w http.ResponseWriter, _ *http.Request, _ Token) {
	answer, err := s.opt.Reload()
	status := http.StatusOK
	if err != nil {
		answer.Error, status = err.Error(), http.StatusUnprocessableEntity
	}
	writeJSON(w, status, answer)
}

func (s *Server) servePolicy(w http.ResponseWriter, _ *http.Request, _ Token) {
	writeJSON(w, http.StatusOK, s.opt.Policy())
}

func (s *Server) serveMCP(w http.ResponseWriter, r *http.Request, token Token) {
	kept := s.kept.account(token.Name)
	defer kept.take(0)
	body, status, e := s.readBody(w, r, kept, mcpCopies)
	if e != nil {
		writeJSON(w, status, e)
		return
	}
	r.Body = &once{body}
	s.opt.MCP(patient{w, s.opt.Idle}, r, token)
}

// mcpCopies is how many copies of a request MCP keeps until it is answered: the message, its parameters, the arguments
// and the call that is sent to the dispatcher.
const mcpCopies = 4

// once is a body that is in memory only until it is read.
type once struct{ rest []byte }

func (o *once) Read(p []byte) (int, error) {
	n := copy(p, o.rest)
	if o.rest = o.rest[n:]; len(o.rest) > 0 {
		return n, nil
	}
	o.rest = nil
	return n, io.EOF
}

func (o *once) Close() error { return nil }

// patient is a response that may take long in total, but not for a single write: a client that does not read is
// disconnected.
type patient struct {
	http.ResponseWriter
	most time.Duration
}

func (p patient) Write(b []byte) (int, error) {
	_ = http.NewResponseController(p.ResponseWriter).SetWriteDeadline(time.Now().Add(p.most))
	return p.ResponseWriter.Write(b)
}

func (p patient) Unwrap() http.ResponseWriter { return p.ResponseWriter }
