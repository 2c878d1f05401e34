package files

import (
	"context"
	"sync"
)

// locks serialises changes of the same file. An entry exists while a caller holds or awaits the lock.
type locks struct {
	mu   sync.Mutex
	held map[string]*lock // by canonical path

	large chan struct{} // one element for each large change in progress
}

const (
	mostLarge  = 2         // large changes at a time; others wait before they use memory
	smallBytes = 256 << 10 // largest size of a change that is not large
)

// count adds n bytes to those that a change keeps in memory: its files before and after it. A large change waits for
// its turn while it holds its locks. This cannot deadlock: one that has its turn waits for no lock.
func (c *change) count(ctx context.Context, n int64, large bool) error {
	if c.size += n; c.size > 4*c.o.MaxWrite {
		return problem("file_path", "nothing changed: the files of this call have more than %d bytes together, before and after it; change fewer of them in one call", 4*c.o.MaxWrite)
	}
	if c.large || !large && c.size <= smallBytes {
		return nil
	}
	select {
	case c.busy.large <- struct{}{}:
		c.large = true
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (c *change) read(ctx context.Context, s *state) (err error) {
	size := min(s.seen.Size(), c.o.MaxWrite)
	if err := c.count(ctx, size, size == 0 || s.grows); err != nil { // files in /proc have size 0
		return err
	}
	if s.before, err = c.o.content(s.old, s.seen.Size(), s.file); err != nil {
		return err
	}
	return c.count(ctx, int64(len(s.before))-size, false)
}

// forget releases what count acquired.
func (c *change) forget() {
	if c.size = 0; c.large {
		c.large = false
		<-c.busy.large
	}
}

type lock struct {
	free  chan struct{} // holds a token while free
	users int
}

func (l *locks) acquire(ctx context.Context, path string) (release func(), err error) {
	l.mu.Lock()
	k := l.held[path]
	if k == nil {
		k = &lock{free: make(chan struct{}, 1)}
		k.free <- struct{}{}
		l.held[path] = k
	}
	k.users++
	l.mu.Unlock()
	select {
	case <-k.free:
		return func() { k.free <- struct{}{}; l.drop(path, k) }, nil
	case <-ctx.Done():
		l.drop(path, k)
		return nil, ctx.Err()
	}
}

func (l *locks) drop(path string, k *lock) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if k.users--; k.users == 0 {
		delete(l.held, path)
	}
}
