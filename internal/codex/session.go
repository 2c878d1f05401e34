package codex

import (
	"sync"
	"time"

	"github.com/toold/toold/internal/dispatch"
)

type session struct {
	srv    *Server
	id     string
	client string
	gone   chan struct{} // closed when the session is dropped

	// reading contains the current series of reads, or nil. It is taken out while it is used.
	reading chan *dispatch.Look

	mu        sync.Mutex
	conn      *Connection // nil while none is attached
	left      time.Time   // zero while one is attached
	leaving   *time.Timer
	over      bool
	processes map[string]*process
	calls     map[string]int // per tool call
}

func (s *session) series(first dispatch.Submission) (*dispatch.Look, error) {
	current := <-s.reading
	defer func() { s.reading <- current }()
	if current != nil && !current.Over() {
		return current, nil
	}
	begun, err := s.srv.opt.Dispatch.Look(first)
	current = begun
	return begun, err
}

func (s *session) endSeries() {
	if current := <-s.reading; current != nil {
		current.Close()
	}
	s.reading <- nil
}

// attach makes c the connection of the session and closes an earlier one, which Codex has given up.
func (s *session) attach(c *Connection) *rpcError {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return refuse("the session has ended")
	}
	if s.leaving != nil {
		s.leaving.Stop()
	}
	earlier := s.conn
	s.conn, s.left = c, time.Time{}
	if earlier != nil {
		earlier.Close()
	}
	for _, p := range s.processes {
		p.watch()
	}
	return nil
}

func (s *session) detach(c *Connection) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn != c {
		return
	}
	s.conn, s.left = nil, time.Now()
	for _, p := range s.processes {
		p.unwatch()
	}
	if s.srv.opt.Linger >= 0 && !s.over {
		s.leaving = time.AfterFunc(s.srv.opt.Linger, func() {
			if !s.leftAt().IsZero() {
				s.srv.drop(s)
			}
		})
	}
}

func (s *session) leftAt() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.left
}

func (s *session) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return
	}
	s.over = true
	close(s.gone)
	for _, p := range s.processes {
		p.unwatch()
	}
}

func (s *session) poke() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn != nil {
		s.conn.poke()
	}
}

func (s *session) find(id string) *process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.processes[id]
}

func (s *session) shown(c *Connection) []*process {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn != c {
		return nil
	}
	list := make([]*process, 0, len(s.processes))
	for _, p := range s.processes {
		list = append(list, p)
	}
	return list
}

// enter adds a process, and removes the oldest ended one that was read if there are too many.
func (s *session) enter(p *process) *rpcError {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return refuse("the session has ended")
	}
	if s.processes[p.id] != nil {
		return refuse("process %s already exists", p.id)
	}
	if len(s.processes) >= maxProcesses {
		oldest := s.oldest()
		if oldest == nil {
			return refuse("%d processes of this session run already; nothing ran", maxProcesses)
		}
		delete(s.processes, oldest.id)
	}
	s.processes[p.id] = p
	return nil
}

// oldest returns the first ended process whose output was written. The caller holds mu.
func (s *session) oldest() (oldest *process) {
	for _, p := range s.processes {
		if at := p.writtenAt(); !at.IsZero() && (oldest == nil || at.Before(oldest.writtenAt())) {
			oldest = p
		}
	}
	return oldest
}

func (s *session) remove(p *process) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.processes[p.id] == p {
		delete(s.processes, p.id)
	}
}

func (s *session) begun(call string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls[call]++
	return s.calls[call]
}
