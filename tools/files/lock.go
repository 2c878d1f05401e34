package files

import (
	"context"
	"sync"
)

// locks serialises the changes of each file. A lock exists while a caller holds or awaits it.
type locks struct {
	mu   sync.Mutex
	held map[string]*lock // by canonical path
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
