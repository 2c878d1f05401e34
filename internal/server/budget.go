package server

import (
	"errors"
	"io"
	"sync"
)

const (
	firstBytes = 4 << 10  // before the length is known
	freeBytes  = 64 << 10 // per connection
)

var errBusy = errors.New("too much is being received at once")

// budget is the memory shared for incoming frames and collected fragments, beyond freeBytes each.
type budget struct {
	mu   sync.Mutex
	left int64
}

// take sets one user's share, if the budget allows it.
func (b *budget) take(held *int64, wants int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	wants = max(wants-freeBytes, 0)
	if more := wants - *held; more > b.left {
		return false
	}
	b.left -= wants - *held
	*held = wants
	return true
}

func (ss *session) receive() (kind int, frame []byte, err error) {
	kind, r, err := ss.conn.NextReader()
	if err != nil {
		return 0, nil, err
	}
	frame, err = ss.srv.incoming.read(r, &ss.charged, ss.dec.Held())
	return kind, frame, err
}

// read reads all of r for a user with other bytes. It charges received bytes, not announced ones.
func (b *budget) read(r io.Reader, held *int64, other int) (all []byte, err error) {
	for all = make([]byte, 0, firstBytes); ; {
		if len(all) == cap(all) {
			wants := 2 * cap(all)
			if !b.take(held, int64(wants+other)) {
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
