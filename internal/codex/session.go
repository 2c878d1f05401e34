package codex

import (
	"maps"
	"slices"
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
	left      time.Time   // when the last one ended; zero while one is attached
	leaving   *time.Timer
	over      bool
	processes map[string]*process
	calls     map[string]int // processes started by each tool call
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

// attach closes an earlier connection, which Codex has given up.
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

// leftAt returns since when no connection is attached; zero while one is.
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

// shown returns the processes whose output c writes. s may be nil.
func (s *session) shown(c *Connection) []*process {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn != c {
		return nil
	}
	return slices.Collect(maps.Values(s.processes))
}

// enter adds a process. If there are too many it removes the oldest ended one that was read.
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
		ended := oldest(s.processes, (*process).writtenAt)
		if ended == nil {
			return refuse("%d processes of this session run already; nothing ran", maxProcesses)
		}
		delete(s.processes, ended.id)
	}
	s.processes[p.id] = p
	return nil
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
