package egress

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
)

// A host that was allowed by its name may share its address with others. TLS names the intended one (server_name, RFC
// 6066, 3). Unusual input is refused, since a server might parse it differently.

var (
	errEnded = errors.New("the connection ended")
	errHello = errors.New("the TLS in it begins in an unusual way")
)

const (
	typeHandshake  = 22 // of a record: RFC 8446, 5.1
	typeServerName = 0  // of an extension
)

// readFirst reads until the server name of a TLS connection is known, and returns the bytes read. name is "" if there
// is none, or if the connection does not begin with TLS.
func readFirst(c io.Reader) (first []byte, name string, err error) {
	first = make([]byte, 4<<10)
	n, err := c.Read(first)
	first = first[:n]
	switch {
	case n == 0 && err != nil && !errors.Is(err, io.EOF): // after io.EOF, the other direction may continue
		return nil, "", errEnded
	case n == 0 || first[0] < 20 || first[0] > 24:
		return first, "", nil
	}
	// Servers differ in the record versions that they accept. So if the first byte is a TLS content type, a
	// ClientHello must follow.
	var raw bytes.Buffer
	hello, err := readHello(io.TeeReader(io.MultiReader(bytes.NewReader(first), c), &raw))
	if err != nil {
		return nil, "", err
	}
	if first = raw.Bytes(); first[0] != typeHandshake || first[1] != 3 {
		return nil, "", errHello
	}
	if !slices.Contains(hello.Extensions, typeServerName) {
		return first, "", nil
	}
	if name, err = ParseName(hello.ServerName); err != nil {
		return nil, "", fmt.Errorf("%w: %w", errHello, err)
	}
	return first, name, nil
}

// readHello reads a ClientHello, and perhaps some of what follows it.
func readHello(from io.Reader) (hello *tls.ClientHelloInfo, err error) {
	c := &silent{from: from}
	_ = tls.Server(c, &tls.Config{GetConfigForClient: func(h *tls.ClientHelloInfo) (*tls.Config, error) {
		hello = h
		return nil, errEnded // the handshake
	}}).Handshake()
	switch {
	case hello != nil:
		return hello, nil
	case c.ended:
		return nil, errEnded
	}
	return nil, errHello
}

// silent is a connection that discards what is sent.
type silent struct {
	net.Conn
	from  io.Reader
	ended bool
}

func (c *silent) Read(p []byte) (n int, err error) {
	n, err = c.from.Read(p)
	c.ended = err != nil
	return n, err
}

func (c *silent) Write(p []byte) (int, error) { return len(p), nil }
