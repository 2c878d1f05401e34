package files

import (
	"context"
	"sync"
)

// locks serialises the changes of each file. A lock exists while a caller holds or awaits it.
type locks struct {
	mu   sync.Mutex
	held map[string]*lock // by canonical path

	large chan struct{} // has an element for each large change that is made or shown
}

const (
	mostLarge  = 2         // large changes at a time; others wait, and do not add to the memory in use
	smallBytes = 256 << 10 // of a change that is not large
)

// count adds bytes that a change keeps in memory: its files before and after it. A large change waits for its
// turn, holding its locks: who has a turn waits for no lock.
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
	if err := c.count(ctx, size, size == 0 || s.grows); err != nil { // files of /proc seem to be empty
		return err
	}
	if s.before, err = c.o.content(s.old, s.seen.Size(), s.file); err != nil {
		return err
	}
	return c.count(ctx, int64(len(s.before))-size, false)
}

// forget ends what count began.
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
