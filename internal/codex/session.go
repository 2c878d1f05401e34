package codex

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/toold/toold/internal/dispatch"
	"github.com/toold/toold/message"
)

type session struct {
	srv     *Server
	id      string
	client  string
	dropped chan struct{} // closed by end

	// series has the current series of reads, or nil. It is empty while a goroutine uses the series.
	series chan *dispatch.Look

	mu        sync.Mutex
	conn      *Connection // nil while there is no connection
	detached  time.Time   // end of the last connection; zero while there is one
	linger    *time.Timer
	ended     bool
	processes map[string]*process
	calls     map[string]int // number of the latest process of each tool call; at most maxCalls
	starts    int            // number of processes started
	forgot    bool           // calls was cleared once
}

func (s *session) readSeries(first dispatch.Submission) (*dispatch.Look, error) {
	current := <-s.series
	defer func() { s.series <- current }()
	if current != nil && !current.Over() {
		return current, nil
	}
	begun, err := s.srv.opt.Dispatch.Look(first)
	current = begun
	return begun, err
}

func (s *session) endSeries() {
	if current := <-s.series; current != nil {
		current.Close()
	}
	s.series <- nil
}

// attach sets the session's connection. It closes an earlier one, which Codex no longer uses.
func (s *session) attach(c *Connection) *rpcError {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return refuse("the session has ended")
	}
	if s.linger != nil {
		s.linger.Stop()
	}
	earlier := s.conn
	s.conn, s.detached = c, time.Time{}
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
	s.conn, s.detached = nil, time.Now()
	for _, p := range s.processes {
		p.unwatch()
	}
	if s.srv.opt.Linger >= 0 && !s.ended {
		s.linger = time.AfterFunc(s.srv.opt.Linger, func() {
			if !s.detachedAt().IsZero() {
				s.srv.drop(s)
			}
		})
	}
}

// detachedAt returns when the last connection ended, or zero while there is one.
func (s *session) detachedAt() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.detached
}

func (s *session) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return
	}
	s.ended = true
	close(s.dropped)
	for _, p := range s.processes {
		p.unwatch()
	}
}

func (s *session) wakeWriter() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn != nil {
		s.conn.wakeWriter()
	}
}

func (s *session) find(id string) *process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.processes[id]
}

// processesOf returns the processes whose output c must write. s may be nil.
func (s *session) processesOf(c *Connection) []*process {
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

// add adds a process. If there are too many, it removes the one whose end was written first.
func (s *session) add(p *process) *rpcError {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return refuse("the session has ended")
	}
	if s.processes[p.id] != nil {
		return refuse("process %s already exists", p.id)
	}
	if len(s.processes) >= maxProcesses {
		ended := oldest(s.processes, (*process).endWrittenAt)
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

// callID returns a call id for a process without a tool call. It contains the session's id, because sessions may use
// the same process id. countStart distinguishes ids that become equal because they are cut.
func (s *session) callID(process ident) string {
	most := message.MaxID - len(s.id) - len(".2147483647")
	begin := string(process[:min(len(process), most)])
	return strings.ToValidUTF8(begin, "") + "." + s.id
}

const maxCalls = 1 << 14

// countStart returns the number of a process within its tool call, from 1. No two processes have the same.
func (s *session) countStart(call string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.starts++
	n, known := s.calls[call]
	if !known && len(s.calls) == maxCalls {
		clear(s.calls)
		s.forgot = true
	}
	if n++; !known && s.forgot {
		n = s.starts // larger than any number that the call may have had
	}
	s.calls[call] = n
	return n
}
