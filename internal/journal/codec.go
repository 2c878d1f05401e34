package journal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/toold/toold/internal/journal/chain"
)

// codec visits the fields of an event in the order of the log, for writing and for reading. Fields
// that an older version did not write keep their zero value; unknown trailing fields are ignored.
type codec interface {
	text(*string)
	bytes(*[]byte)
	number(*int64)
	when(*time.Time) // keeps the zero time
}

// A field longer than inRecord is a blob: its length has the bit beside, and its hash follows.
const (
	inRecord = 64 << 10
	beside   = 1 << 40
)

// encoder appends fields. Numbers are varints; texts follow their length.
type encoder struct {
	p    []byte
	keep func([]byte) (chain.Hash, error) // stores a blob; nil: texts stay in place
	err  error                            // of keep
}

func (e *encoder) text(s *string) {
	if e.keep != nil && len(*s) > inRecord {
		e.beside([]byte(*s))
		return
	}
	e.p = binary.AppendUvarint(e.p, uint64(len(*s)))
	e.p = append(e.p, *s...)
}

func (e *encoder) bytes(b *[]byte) {
	if e.keep != nil && len(*b) > inRecord {
		e.beside(*b)
		return
	}
	e.p = binary.AppendUvarint(e.p, uint64(len(*b)))
	e.p = append(e.p, *b...)
}

func (e *encoder) beside(text []byte) {
	if e.err != nil {
		return
	}
	var h chain.Hash
	h, e.err = e.keep(text)
	e.p = binary.AppendUvarint(e.p, uint64(len(text))|beside)
	e.p = append(e.p, h[:]...)
}

func (e *encoder) number(n *int64) { e.p = binary.AppendVarint(e.p, *n) }

func (e *encoder) when(t *time.Time) {
	n := int64(0)
	if !t.IsZero() {
		n = t.UnixNano()
	}
	e.number(&n)
}

// decoder reads fields. After an error it sets err and reads nothing.
type decoder struct {
	p     []byte
	fetch func(h chain.Hash, size int64) ([]byte, error) // reads a blob; nil: there are none
	err   error
}

var errCutOff = errors.New("a field is cut off")

func (d *decoder) take() []byte {
	size, n := binary.Uvarint(d.p)
	away, kept := size&beside != 0, size&(beside-1)
	if away {
		size = uint64(len(chain.Hash{}))
	}
	switch {
	case len(d.p) == 0 || d.err != nil:
		return nil // written before this field existed
	case n <= 0, size > uint64(len(d.p)-n), away && d.fetch == nil:
		d.err = errCutOff
		return nil
	}
	field := d.p[n : n+int(size)]
	if d.p = d.p[n+int(size):]; away {
		field, d.err = d.fetch(chain.Hash(field), int64(kept))
	}
	return field
}

func (d *decoder) text(s *string) { *s = string(d.take()) }

func (d *decoder) bytes(b *[]byte) {
	*b = nil
	if field := d.take(); len(field) > 0 {
		*b = field
	}
}

func (d *decoder) number(v *int64) {
	*v = 0
	if len(d.p) == 0 || d.err != nil {
		return
	}
	x, n := binary.Varint(d.p)
	if n <= 0 {
		d.err = errCutOff
		return
	}
	*v, d.p = x, d.p[n:]
}

func (d *decoder) when(t *time.Time) {
	var n int64
	d.number(&n)
	*t = time.Time{}
	if n != 0 {
		*t = time.Unix(0, n).UTC()
	}
}

// encode appends the encoded event.
func encode(p []byte, e event, keep func([]byte) (chain.Hash, error)) ([]byte, error) {
	c := encoder{p: p, keep: keep}
	e.fields(&c)
	return c.p, c.err
}

// decode reads an event, which then refers to body.
func decode(body []byte, e event, fetch func(chain.Hash, int64) ([]byte, error)) error {
	c := decoder{p: body, fetch: fetch}
	e.fields(&c)
	return c.err
}

// texts reads blobs. Unless strict, it replaces lost ones by lostText.
type texts struct {
	dir    chain.Dir
	strict bool
}

const lostText = `{"lost":"this text was removed or changed in the files of toold; toold audit verify names the call"}`

// of returns the reader for records of a segment.
func (t texts) of(segment uint32) func(chain.Hash, int64) ([]byte, error) {
	return func(h chain.Hash, size int64) ([]byte, error) {
		text, err := chain.ReadBlob(t.dir, segment, h, size)
		switch lost := errors.Is(err, chain.ErrBlob); {
		case lost && t.strict:
			return nil, fmt.Errorf("the text %x of %d bytes is kept beside it: %w", h[:], size, err)
		case lost:
			return []byte(lostText), nil
		}
		return text, err
	}
}
