package journal

import (
	"encoding/binary"
	"errors"
	"time"
)

// codec goes over the fields of an event, in the order in which they are in the log. One
// list of fields thus serves for writing and for reading. A field that an older toold did
// not write keeps its zero value; fields that a newer one added are passed over.
type codec interface {
	text(*string)
	bytes(*[]byte)
	number(*int64)
	when(*time.Time) // the zero time is kept
}

// encoder appends the fields. Numbers are varints, texts follow their length.
type encoder struct{ p []byte }

func (e *encoder) text(s *string) {
	e.p = binary.AppendUvarint(e.p, uint64(len(*s)))
	e.p = append(e.p, *s...)
}

func (e *encoder) bytes(b *[]byte) {
	e.p = binary.AppendUvarint(e.p, uint64(len(*b)))
	e.p = append(e.p, *b...)
}

func (e *encoder) number(n *int64) { e.p = binary.AppendVarint(e.p, *n) }

func (e *encoder) when(t *time.Time) {
	n := int64(0)
	if !t.IsZero() {
		n = t.UnixNano()
	}
	e.number(&n)
}

// decoder reads them. After the first that is cut off, err is set and nothing changes.
type decoder struct {
	p   []byte
	err error
}

var errCutOff = errors.New("a field is cut off")

func (d *decoder) take() []byte {
	size, n := binary.Uvarint(d.p)
	switch {
	case len(d.p) == 0 || d.err != nil:
		return nil // written before there was this field
	case n <= 0, size > uint64(len(d.p)-n):
		d.err = errCutOff
		return nil
	}
	field := d.p[n : n+int(size)]
	d.p = d.p[n+int(size):]
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

// encode is the body of the record of an event.
func encode(e event) []byte {
	var c encoder
	e.fields(&c)
	return c.p
}

// decode reads it. What it returns in e refers to body.
func decode(body []byte, e event) error {
	c := decoder{p: body}
	e.fields(&c)
	return c.err
}
