package server

import "net/http"

// Reloaded tells which policy holds.
type Reloaded struct {
	Policy   string   `json:"policy"` // path of the file, or a name
	Warnings []string `json:"warnings,omitempty"`
	Error    string   `json:"error,omitempty"` // why it is not the one on disk
}

// serveReload reloads the policy files. A faulty one is answered with 422.
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
