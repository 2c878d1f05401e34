package server

import (
	"bytes"
	"io"
	"net/http"
	"time"
)

// serveMCP passes a request on to what speaks the Model Context Protocol.
func (s *Server) serveMCP(w http.ResponseWriter, r *http.Request, who Token) {
	body, status, e := s.readBody(w, r)
	if e != nil {
		writeJSON(w, status, e)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	s.opt.MCP(patient{w, s.opt.Idle}, r, who)
}

// patient is an answer that may take long, but no single write of it does: a client that
// does not read is given up.
type patient struct {
	http.ResponseWriter
	most time.Duration
}

func (p patient) Write(b []byte) (int, error) {
	_ = http.NewResponseController(p.ResponseWriter).SetWriteDeadline(time.Now().Add(p.most)) // every connection has one
	return p.ResponseWriter.Write(b)
}

// Unwrap is for http.ResponseController.
func (p patient) Unwrap() http.ResponseWriter { return p.ResponseWriter }
