package journal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/toold/toold/internal/journal/chain"
)

// codec visits the fields of an event in the order of the log, to write or to read them. Numbers are varints; a text
// follows its length. Fields that an older version did not write keep their zero value, and unknown trailing fields
// are ignored. After an error nothing more is read.
type codec struct {
	p     []byte // already written, or still to read
	err   error
	blobs *chain.Batch // stores large fields; nil: they stay in the record
	reads bool
	fetch func(h chain.Hash, size int64) ([]byte, error) // reads a blob; nil: there are no blobs
}

// A field longer than inRecord is stored as a blob: its length has the bit beside set, and its hash follows.
const (
	inRecord = 64 << 10
	beside   = 1 << 40
)

var errCutOff = errors.New("a field is cut off")

func (c *codec) text(s *string) {
	switch {
	case c.reads:
		*s = string(c.take())
	case c.blobs != nil && len(*s) > inRecord:
		c.beside([]byte(*s))
	default:
		c.p = binary.AppendUvarint(c.p, uint64(len(*s)))
		c.p = append(c.p, *s...)
	}
}

func (c *codec) bytes(b *[]byte) {
	switch {
	case c.reads:
		*b = c.take()
	case c.blobs != nil && len(*b) > inRecord:
		c.beside(*b)
	default:
		c.p = binary.AppendUvarint(c.p, uint64(len(*b)))
		c.p = append(c.p, *b...)
	}
}

func (c *codec) number(v *int64) {
	if !c.reads {
		c.p = binary.AppendVarint(c.p, *v)
		return
	}
	*v = 0
	if len(c.p) == 0 || c.err != nil {
		return
	}
	x, n := binary.Varint(c.p)
	if n <= 0 {
		c.err = errCutOff
		return
	}
	*v, c.p = x, c.p[n:]
}

func (c *codec) flag(is *bool) {
	n := int64(0)
	if *is {
		n = 1
	}
	c.number(&n)
	*is = n != 0
}

// when encodes a time in nanoseconds since 1970; 0 is the zero time.
func (c *codec) when(t *time.Time) {
	n := int64(0)
	if !t.IsZero() {
		n = t.UnixNano()
	}
	c.number(&n)
	if *t = (time.Time{}); n != 0 {
		*t = time.Unix(0, n).UTC()
	}
}

func (c *codec) beside(text []byte) {
	if c.err != nil {
		return
	}
	var h chain.Hash
	h, c.err = c.blobs.Blob(text)
	c.p = binary.AppendUvarint(c.p, uint64(len(text))|beside)
	c.p = append(c.p, h[:]...)
}

// take reads a text. It returns nil for an empty or missing one.
func (c *codec) take() []byte {
	size, n := binary.Uvarint(c.p)
	away, kept := size&beside != 0, size&(beside-1)
	if away {
		size = uint64(len(chain.Hash{}))
	}
	switch {
	case len(c.p) == 0 || c.err != nil:
		return nil // written before this field existed
	case n <= 0, size > uint64(len(c.p)-n), away && c.fetch == nil:
		c.err = errCutOff
		return nil
	}
	field := c.p[n : n+int(size)]
	if c.p = c.p[n+int(size):]; away {
		field, c.err = c.fetch(chain.Hash(field), int64(kept))
	}
	if len(field) == 0 {
		return nil
	}
	return field
}

func encode(e event, blobs *chain.Batch) ([]byte, error) {
	c := codec{blobs: blobs}
	e.fields(&c)
	return c.p, c.err
}

// decode reads the body of a record. e then refers to the memory of body.
func decode(body []byte, e event, fetch func(chain.Hash, int64) ([]byte, error)) error {
	c := codec{p: body, reads: true, fetch: fetch}
	e.fields(&c)
	return c.err
}

// texts reads blobs. It replaces lost ones by a note.
type texts struct {
	dir  chain.Dir
	lost func(error) // receives the errors of replaced blobs; may be nil
}

// lostBody replaces a removed or changed blob.
const (
	lostBody = `{"lost":"` + lostNote + `"}`
	lostNote = "this text was removed or changed in the files of toold; toold audit verify names the call"
)

func (t texts) of(segment uint32) func(chain.Hash, int64) ([]byte, error) {
	return func(h chain.Hash, size int64) ([]byte, error) {
		text, err := chain.ReadBlob(t.dir, segment, h, size)
		if !errors.Is(err, chain.ErrBlob) {
			return text, err
		}
		err = fmt.Errorf("the text %x of %d bytes is kept beside it: %w", h[:], size, err)
		if t.lost != nil {
			t.lost(err)
		}
		return []byte(lostBody), nil
	}
}
