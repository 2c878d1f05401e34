package server

import (
	"errors"
	"io"
	"sync"
)

const (
	firstBytes = 4 << 10  // charged for a frame of unknown length
	freeBytes  = 64 << 10 // incoming data of each connection that is not charged
)

var errBusy = errors.New("too much is being received at once")

// budget limits the memory for incoming frames and collected fragments, or for unanswered requests, beyond freeBytes
// per connection. A client gets no more than what it leaves to others: one can use half of it, two a third each.
type budget struct {
	mu   sync.Mutex
	left int64
	used map[string]int64 // by client
}

// account is what one connection or request uses of a budget. It is not safe for concurrent use.
type account struct {
	of     *budget
	client string
	held   int64
}

func (b *budget) account(client string) *account { return &account{of: b, client: client} }

// take sets the account to wants without freeBytes, unless the budget or the client's part of it is exceeded.
func (a *account) take(wants int64) bool {
	b := a.of
	b.mu.Lock()
	defer b.mu.Unlock()
	more := max(wants-freeBytes, 0) - a.held
	left, used := b.left-more, b.used[a.client]+more
	if more > 0 && used > left {
		return false
	}
	if b.used == nil {
		b.used = make(map[string]int64)
	}
	a.held += more
	b.left, b.used[a.client] = left, used
	if used == 0 {
		delete(b.used, a.client)
	}
	return true
}

// read reads all of r for a user that has other bytes already. It charges received bytes, not announced ones.
func (a *account) read(r io.Reader, other int) (all []byte, err error) {
	for all = make([]byte, 0, firstBytes); ; {
		if len(all) == cap(all) {
			wants := 2 * cap(all)
			if !a.take(int64(wants + other)) {
				return nil, errBusy
			}
			all = append(make([]byte, 0, wants), all...)
		}
		n, err := r.Read(all[len(all):cap(all)])
		all = all[:len(all)+n]
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
	}
}
