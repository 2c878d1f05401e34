package egress

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// A host that was allowed by its name may share its address with others. TLS names the intended one (server_name, RFC
// 6066, 3). Unusual input is refused, since a server might parse it differently.

var (
	errEnded = errors.New("the connection ended")
	errHello = errors.New("the TLS in it begins in an unusual way")
)

const (
	maxHello  = 32 << 10 // bytes of the ClientHello
	maxRecord = 16 << 10 // RFC 8446, 5.1

	typeHandshake   = 22
	typeClientHello = 1
	typeServerName  = 0 // the extension, and the kind of name in it
)

// readFirst reads until the server name of a TLS connection is known, and returns the bytes read. name is "" if there
// is none, or if the connection does not begin with TLS.
func readFirst(c io.Reader) (first []byte, name string, err error) {
	first = make([]byte, 4<<10)
	n, err := c.Read(first)
	first = first[:n]
	if n == 0 {
		return first, "", ended(err)
	}
	if first[0] < 20 || first[0] > 24 {
		return first, "", nil
	}
	// Servers differ in the record versions that they accept. So if the first byte is a TLS content type, a
	// ClientHello must follow.
	r := &records{from: c, raw: first}
	head, err := r.message(4)
	if err != nil {
		return nil, "", err
	}
	size := int(binary.BigEndian.Uint32(head) & 0xffffff)
	if head[0] != typeClientHello || size > maxHello {
		return nil, "", errHello
	}
	hello, err := r.message(4 + size)
	if err != nil {
		return nil, "", err
	}
	name, err = serverName(hello[4:])
	return r.raw, name, err
}

// ended returns nil if only one direction ended: the other may continue.
func ended(err error) error {
	if err == nil || errors.Is(err, io.EOF) {
		return nil
	}
	return errEnded
}

// records joins handshake messages that span records.
type records struct {
	from io.Reader
	raw  []byte
	at   int // offset in raw of the next record
	body []byte
}

func (r *records) message(n int) ([]byte, error) {
	for len(r.body) < n {
		head, err := r.need(5)
		if err != nil {
			return nil, err
		}
		size := int(binary.BigEndian.Uint16(head[3:]))
		isHandshake := head[0] == typeHandshake && head[1] == 3
		if !isHandshake || size == 0 || size > maxRecord {
			return nil, errHello
		}
		record, err := r.need(5 + size)
		if err != nil {
			return nil, err
		}
		r.body = append(r.body, record[5:]...)
		r.at += 5 + size
	}
	return r.body[:n], nil
}

func (r *records) need(n int) ([]byte, error) {
	if missing := r.at + n - len(r.raw); missing > 0 {
		if len(r.raw)+missing > 4*maxHello {
			return nil, errHello
		}
		more := make([]byte, missing)
		if _, err := io.ReadFull(r.from, more); err != nil {
			return nil, errEnded
		}
		r.raw = append(r.raw, more...)
	}
	return r.raw[r.at : r.at+n], nil
}

// serverName returns the name in a ClientHello (RFC 8446, 4.1.2). Two names are an error.
func serverName(hello []byte) (string, error) {
	b := field(hello)
	b.skip(2 + 32) // version, random
	b.take(1)      // session
	b.take(2)      // cipher suites
	b.take(1)      // compression
	if b.bad {
		return "", errHello
	}
	if len(b.rest) == 0 {
		return "", nil
	}
	extensions := field(b.take(2))
	if b.bad || len(b.rest) > 0 {
		return "", errHello
	}
	name := ""
	for len(extensions.rest) > 0 {
		kind, body := extensions.number(), extensions.take(2)
		if extensions.bad {
			return "", errHello
		}
		if kind != typeServerName {
			continue
		}
		found, err := hostIn(body)
		if err != nil || name != "" {
			return "", errHello
		}
		name = found
	}
	return name, nil
}

func hostIn(extension []byte) (string, error) {
	b := field(extension)
	list := field(b.take(2))
	kind := list.skip(1)
	host := list.take(2)
	isWhole := !b.bad && !list.bad && len(b.rest)+len(list.rest) == 0
	if !isWhole || kind[0] != typeServerName {
		return "", errHello
	}
	name, err := ParseName(string(host))
	if err != nil {
		return "", fmt.Errorf("%w: %w", errHello, err)
	}
	return name, nil
}

type fields struct {
	rest []byte
	bad  bool // the input is too short; later reads return nothing
}

func field(b []byte) *fields { return &fields{rest: b} }

func (f *fields) skip(n int) []byte {
	if f.bad || n > len(f.rest) {
		f.bad, f.rest = true, nil
		return []byte{0}
	}
	b := f.rest[:n]
	f.rest = f.rest[n:]
	return b
}

func (f *fields) number() int {
	if b := f.skip(2); len(b) == 2 {
		return int(binary.BigEndian.Uint16(b))
	}
	return 0
}

// take returns a field that is preceded by its length, which has lengthBytes bytes.
func (f *fields) take(lengthBytes int) []byte {
	n := 0
	for _, b := range f.skip(lengthBytes) {
		n = n<<8 | int(b)
	}
	if b := f.skip(n); !f.bad {
		return b
	}
	return nil
}
