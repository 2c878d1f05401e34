package chain_test

import (
	"errors"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"sort"
	"time"

	"github.com/toold/toold/internal/journal/chain"
)

// memory is a file system in memory that forgets what was not synced, and that fails when
// it is asked to.
type memory struct {
	names  map[string]*content // as processes see them
	onDisk map[string]*content // as a crash leaves them
	dirs   map[string]*memory  // in it
	locked bool
	*faults
}

// faults are shared by a file system's directories.
type faults struct {
	calls int   // so far
	at    int   // of this call on it fails; 0 = never
	times int   // so often
	err   error // so
}

// content is that of one file.
type content struct {
	now     []byte   // as processes read it
	onDisk  []byte   // as it was synced
	pending []change // since then
}

// change is a write, or with nil text a change of the size.
type change struct {
	at   int64
	text []byte
}

func (c change) on(p []byte) []byte {
	if c.text == nil {
		return grown(p[:min(int64(len(p)), c.at)], c.at)
	}
	p = grown(p, max(int64(len(p)), c.at+int64(len(c.text))))
	copy(p[c.at:], c.text)
	return p
}

func grown(p []byte, size int64) []byte {
	return append(append([]byte{}, p...), make([]byte, size-int64(len(p)))...)
}

func newMemory() *memory {
	return &memory{names: map[string]*content{}, onDisk: map[string]*content{}, dirs: map[string]*memory{}, faults: &faults{}}
}

// failing makes the call with number at, counted from now, fail, and times-1 after it.
func (m *faults) failing(at, times int, err error) {
	m.calls, m.at, m.times, m.err = 0, at, times, err
}

// all are the files, those in its directories too.
func (m *memory) all() map[string]*content {
	files := maps.Clone(m.names)
	for name, d := range m.dirs {
		for below, c := range d.all() {
			files[name+"/"+below] = c
		}
	}
	return files
}

// fails counts a call.
func (m *faults) fails() error {
	m.calls++
	if m.at > 0 && m.calls >= m.at && m.calls < m.at+m.times {
		return m.err
	}
	return nil
}

// failed reports whether a call has failed since failing was called.
func (m *faults) failed() bool { return m.at > 0 && m.calls >= m.at }

// crashed is what a machine finds after the power was cut: of what was not synced any
// part, in any order.
func (m *memory) crashed(r *rand.Rand) *memory {
	after := newMemory()
	left := func(c *content) *content {
		p := append([]byte{}, c.onDisk...)
		for _, w := range c.pending {
			switch r.IntN(4) {
			case 0:
			case 1:
				p = torn(p, w, r)
			default:
				p = w.on(p)
			}
		}
		return &content{now: p, onDisk: p}
	}
	for name, c := range m.names {
		switch old := m.onDisk[name]; {
		case old == c || r.IntN(2) == 0:
			after.names[name] = left(c)
		case old != nil: // it was replaced
			after.names[name] = left(old)
		}
	}
	for name, c := range m.onDisk {
		if m.names[name] == nil && r.IntN(2) == 0 {
			after.names[name] = left(c)
		}
	}
	for name, c := range after.names {
		after.onDisk[name] = c
	}
	for name, d := range m.dirs {
		after.dirs[name] = d.crashed(r)
		after.dirs[name].faults = after.faults
	}
	return after
}

// torn makes a part of a write.
func torn(p []byte, w change, r *rand.Rand) []byte {
	if len(w.text) == 0 {
		return p
	}
	from, to := r.IntN(len(w.text)), r.IntN(len(w.text)+1)
	if r.IntN(2) == 0 {
		from = 0
	}
	return change{w.at + int64(from), w.text[from:max(from, to)]}.on(p)
}

// Close is for the caller's interface.
func (m *memory) Close() error { return nil }

func (m *memory) Open(name string) (chain.File, error) {
	if err := m.fails(); err != nil {
		return nil, err
	}
	c := m.names[name]
	if c == nil {
		return nil, fs.ErrNotExist
	}
	return &handle{m, c}, nil
}

func (m *memory) Create(name string) (chain.File, error) {
	if err := m.fails(); err != nil {
		return nil, err
	}
	if m.names[name] == nil {
		m.names[name] = &content{}
	}
	return &handle{m, m.names[name]}, nil
}

// Rename that fails has done nothing, and so has Remove.
func (m *memory) Rename(from, to string) error {
	if err := m.fails(); err != nil {
		return err
	}
	if m.names[from] == nil {
		return fs.ErrNotExist
	}
	m.names[to] = m.names[from]
	delete(m.names, from)
	return nil
}

func (m *memory) Remove(name string) error {
	if err := m.fails(); err != nil {
		return err
	}
	if m.names[name] == nil {
		return fs.ErrNotExist
	}
	delete(m.names, name)
	return nil
}

func (m *memory) Sub(name string, create bool) (chain.Dir, error) {
	if err := m.fails(); err != nil {
		return nil, err
	}
	d := m.dirs[name]
	if d == nil && !create {
		return nil, fs.ErrNotExist
	}
	if d == nil {
		d = newMemory()
		d.faults, m.dirs[name] = m.faults, d
	}
	return d, nil
}

func (m *memory) Names() (list []string, err error) {
	for name := range m.names {
		list = append(list, name)
	}
	for name := range m.dirs {
		list = append(list, name)
	}
	sort.Strings(list)
	return list, m.fails()
}

func (m *memory) Sync() error {
	if err := m.fails(); err != nil {
		return err
	}
	m.onDisk = map[string]*content{}
	for name, c := range m.names {
		m.onDisk[name] = c
	}
	return nil
}

func (m *memory) Same(f chain.File) (size int64, same bool, err error) {
	c := f.(*handle).c
	for _, named := range m.names {
		same = same || named == c
	}
	return int64(len(c.now)), same, m.fails()
}

func (m *memory) Lock(time.Duration) (func(), error) {
	if err := m.fails(); err != nil {
		return nil, err
	}
	if m.locked {
		return nil, chain.ErrBusy
	}
	m.locked = true
	return func() { m.locked = false }, nil
}

// handle is an open file.
type handle struct {
	m *memory
	c *content
}

func (h *handle) ReadAt(p []byte, off int64) (int, error) {
	if err := h.m.fails(); err != nil {
		return 0, err
	}
	if off >= int64(len(h.c.now)) {
		return 0, io.EOF
	}
	n := copy(p, h.c.now[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// WriteAt that fails has written the first half.
func (h *handle) WriteAt(p []byte, off int64) (int, error) {
	err := h.m.fails()
	if err != nil {
		p = p[:len(p)/2]
	}
	h.apply(change{off, append([]byte{}, p...)})
	return len(p), err
}

func (h *handle) apply(c change) {
	h.c.now = c.on(h.c.now)
	h.c.pending = append(h.c.pending, c)
}

func (h *handle) Truncate(size int64) error {
	if err := h.m.fails(); err != nil {
		return err
	}
	h.apply(change{at: size})
	return nil
}

func (h *handle) Size() (int64, error) { return int64(len(h.c.now)), h.m.fails() }

// Sync that fails has lost what it should have written, and does not say so again.
func (h *handle) Sync() error {
	err := h.m.fails()
	if err == nil {
		for _, w := range h.c.pending {
			h.c.onDisk = w.on(h.c.onDisk)
		}
	}
	h.c.pending = nil
	return err
}

func (h *handle) Close() error {
	if err := h.m.fails(); err != nil {
		return errors.Join(err)
	}
	return nil
}
