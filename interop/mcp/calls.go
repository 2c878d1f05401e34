package mcp

import (
	"fmt"
	"sync"
)

const maxCalls = 64

// calls are the unfinished calls. A client may ask its user about one, and repeat the request with answer and key.
type calls struct {
	running sync.WaitGroup

	mu     sync.Mutex
	closed bool
	all    map[*call]struct{}
	held   map[string]waiting // by key
	ended  []string           // keys of ended calls, oldest first
}

type waiting struct {
	*call
	*question
}

func (s *calls) enter(c *call) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return fmt.Errorf("toold is stopping; nothing ran")
	case len(s.all) >= maxCalls:
		return fmt.Errorf("%d calls run or wait for an answer already, and no more may; nothing ran. Wait until one has ended", maxCalls)
	}
	if s.all == nil {
		s.all, s.held = map[*call]struct{}{}, map[string]waiting{}
	}
	s.all[c] = struct{}{}
	s.running.Add(1)
	return nil
}

// leave removes an ended call. It keeps the latest keys, because a client may repeat its request although others have
// answered.
func (s *calls) leave(c *call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, c)
	for key, w := range s.held {
		if w.call == c {
			s.ended = append(s.ended, key)
		}
	}
	for ; len(s.ended) > maxCalls; s.ended = s.ended[1:] {
		delete(s.held, s.ended[0])
	}
	s.running.Done()
}

func (s *calls) some() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.all) > 0
}

func (s *calls) hold(key string, w waiting) (held bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, held = s.all[w.call]; held {
		s.held[key] = w
	}
	return held
}

func (s *calls) take(key string) (w waiting, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w, ok = s.held[key]
	delete(s.held, key)
	return w, ok
}

func (s *calls) end() {
	s.mu.Lock()
	s.closed = true
	for c := range s.all {
		c.cancel("the client has left")
	}
	s.mu.Unlock()
	s.running.Wait()
}
