//go:build linux

package main

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// byName are the attempts on what carries connections by name.
func byName() map[string]attempt {
	return map[string]attempt{
		"say": sayTo, "hello": sayHello, "many": sayToMany, "half": sayAndEnd, "take": takeDoor, "hold": holdMany,
	}
}

// sayTo connects to HOST PORT as programs do that know nothing of proxies, says TEXT
// and shows the answer.
func sayTo(a args) (string, int, error) {
	c, err := net.Dial("tcp4", net.JoinHostPort(a.text(0), a.text(1)))
	if err != nil {
		return "say", -1, err
	}
	defer c.Close()
	return answered("say", c, a.text(2)+"\n")
}

// answered says text and shows what comes back. No answer is a failure.
func answered(name string, c net.Conn, text string) (string, int, error) {
	if text != "" { // to write nothing fails, too, where the direction has ended
		if _, err := io.WriteString(c, text); err != nil {
			return name, -1, err
		}
	}
	b := make([]byte, 256)
	n, err := c.Read(b)
	if n == 0 {
		return name, -1, fmt.Errorf("no answer: %w", err)
	}
	fmt.Printf("reply:%s\n", b[:n])
	return name, n, nil
}

// sayAndEnd says TEXT to HOST PORT without the end of a line, ends its own direction
// and waits for the answer.
func sayAndEnd(a args) (string, int, error) {
	c, err := net.Dial("tcp4", net.JoinHostPort(a.text(0), a.text(1)))
	if err != nil {
		return "half", -1, err
	}
	defer c.Close()
	if _, err := io.WriteString(c, a.text(2)); err != nil {
		return "half", -1, err
	}
	if err := c.(*net.TCPConn).CloseWrite(); err != nil {
		return "half", -1, err
	}
	return answered("half", c, "")
}

// sayToMany holds N connections to HOST PORT open at the same time, and tells how
// many were answered.
func sayToMany(a args) (string, int, error) {
	// Once: each question reads files, and threads that wait for them are processes.
	to, err := net.ResolveTCPAddr("tcp4", net.JoinHostPort(a.text(0), a.text(1)))
	if err != nil {
		return "many", -1, err
	}
	var all sync.WaitGroup
	var mu sync.Mutex
	var good int
	var last error
	asking := make(chan struct{}, 200) // a thread waits for each: a call has only so many
	for range a.number(2) {
		all.Go(func() {
			asking <- struct{}{}
			c, err := net.DialTCP("tcp4", nil, to)
			<-asking
			if err == nil {
				defer c.Close()
				_, err = io.WriteString(c, "many\n")
			}
			if err == nil {
				_, err = c.Read(make([]byte, 256))
			}
			mu.Lock()
			defer mu.Unlock()
			if last = err; err == nil {
				good++
			}
		})
	}
	all.Wait()
	fmt.Printf("MANY %d of %d\n", good, a.number(2))
	if good == 0 {
		return "many", 0, last
	}
	return "many", good, nil
}

// holdMany opens N connections to HOST PORT at the same time, and says nothing on them. It
// makes the file beside-ready when it gets no more for a second, and beside-ended when one
// ends.
func holdMany(a args) (string, int, error) {
	to, err := net.ResolveTCPAddr("tcp4", net.JoinHostPort(a.text(0), a.text(1)))
	if err != nil {
		return "hold", -1, err
	}
	open, ended := make(chan net.Conn), make(chan error)
	for range a.number(2) {
		// Ends with its connection, or the process.
		go func() {
			c, err := net.DialTCP("tcp4", nil, to)
			if err == nil {
				open <- c
				_, err = c.Read(make([]byte, 1))
			}
			ended <- err
		}()
	}
	for n := 0; ; {
		select {
		case <-open:
			n++
		case err := <-ended:
			fmt.Printf("hold: of %d one ended: %v\n", n, err)
			return "hold", n, os.WriteFile("beside-ended", nil, 0o600)
		case <-time.After(time.Second):
			if n > 0 {
				fmt.Printf("hold: %d\n", n)
				os.WriteFile("beside-ready", nil, 0o600)
			}
		}
	}
}

// curl stands in for the tool of that name: a request and its answer, whatever the
// options.
func curl(a args) int {
	for _, word := range a {
		to, err := url.Parse(word)
		if err != nil || to.Scheme != "http" {
			continue
		}
		port := to.Port()
		if port == "" {
			port = "80"
		}
		return report(sayTo(args{to.Hostname(), port, "GET / HTTP/1.0"}))
	}
	return 2
}

// dig stands in for the tool of that name: [KIND] NAME [@SERVER] [+tcp]. The name is
// taken as it stands, with escapes as in Go: \x00 is a byte.
func dig(a args) int {
	q := query{kind: dnsmessage.TypeA, server: "127.0.0.1:53", network: "udp"}
	for _, word := range a {
		kind, known := kinds()[word]
		server, elsewhere := strings.CutPrefix(word, "@")
		switch {
		case known:
			q.kind = kind
		case elsewhere:
			q.server = net.JoinHostPort(server, "53")
		case word == "+tcp":
			q.network = "tcp"
		default:
			q.name = word
		}
	}
	return report(q.ask())
}

func kinds() map[string]dnsmessage.Type {
	return map[string]dnsmessage.Type{
		"A": dnsmessage.TypeA, "AAAA": dnsmessage.TypeAAAA, "TXT": dnsmessage.TypeTXT, "ANY": dnsmessage.TypeALL,
		"HTTPS": 65, "CNAME": dnsmessage.TypeCNAME, "MX": dnsmessage.TypeMX, "SRV": dnsmessage.TypeSRV, "PTR": dnsmessage.TypePTR,
	}
}

type query struct {
	kind                  dnsmessage.Type
	name, server, network string
}

func (q query) ask() (string, int, error) {
	text, err := strconv.Unquote(`"` + q.name + `"`)
	if err != nil {
		return "dig", -1, err
	}
	name, err := dnsmessage.NewName(strings.TrimSuffix(text, ".") + ".")
	if err != nil {
		return "dig", -1, err
	}
	m := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: 7, RecursionDesired: true},
		Questions: []dnsmessage.Question{{Name: name, Type: q.kind, Class: dnsmessage.ClassINET}},
	}
	question, err := m.Pack()
	if err != nil {
		return "dig", -1, err
	}
	answer, err := q.exchange(question)
	if err != nil {
		return "dig", -1, err
	}
	if err := m.Unpack(answer); err != nil {
		return "dig", -1, err
	}
	fmt.Printf("%s status: %s, ANSWER: %d\n", q.name, statusOf(m.RCode), len(m.Answers))
	return "dig", int(m.RCode), nil
}

func statusOf(c dnsmessage.RCode) string {
	switch c {
	case dnsmessage.RCodeSuccess:
		return "NOERROR"
	case dnsmessage.RCodeNameError:
		return "NXDOMAIN"
	}
	return strings.ToUpper(strings.TrimPrefix(c.String(), "RCode"))
}

func (q query) exchange(question []byte) ([]byte, error) {
	c, err := net.Dial(q.network, q.server)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	if q.network == "tcp" {
		return exchangeTCP(c, question)
	}
	if _, err := c.Write(question); err != nil {
		return nil, err
	}
	b := make([]byte, 4096)
	n, err := c.Read(b)
	return b[:n], err
}

// takeDoor listens where the call's connections come out: AT is an address.
func takeDoor(a args) (string, int, error) {
	l, err := net.Listen("tcp4", a.text(0))
	if err != nil {
		return "take", -1, err
	}
	return "take", 0, l.Close()
}

// sayHello sends HOST PORT a ClientHello (RFC 8446, 4.1.2) for the name INSIDE, and a
// line after it. HOW says what is odd about it: "bytes" come one at a time, in
// "records" each byte is a record, an "alert" comes before it, "twice" has two lists
// of names, "none" has none, "stall" ends after 3 bytes and waits for the end of the
// connection, "version" is followed by the version of the record, as a number.
func sayHello(a args) (string, int, error) {
	c, err := net.Dial("tcp4", net.JoinHostPort(a.text(0), a.text(1)))
	if err != nil {
		return "hello", -1, err
	}
	defer c.Close()
	var parts [][]byte
	hello := clientHello(a.text(2), a.text(3))
	switch a.text(3) {
	case "bytes":
		for _, b := range record(hello) {
			parts = append(parts, []byte{b})
		}
	case "records":
		for _, b := range hello {
			parts = append(parts, record([]byte{b}))
		}
	case "alert":
		parts = [][]byte{{21, 3, 1, 0, 2, 1, 90}, record(hello)} // a warning: the user cancelled
	case "stall":
		parts = [][]byte{record(hello)[:3]}
	case "version":
		odd := record(hello)
		binary.BigEndian.PutUint16(odd[1:], uint16(a.number(4)))
		parts = [][]byte{odd}
	default:
		parts = [][]byte{record(hello)}
	}
	c.(*net.TCPConn).SetNoDelay(true)
	for _, p := range parts {
		if _, err := c.Write(p); err != nil {
			return "hello", -1, err
		}
	}
	if a.text(3) == "stall" {
		return answered("hello", c, "")
	}
	return answered("hello", c, "\n")
}

// record is a piece of a handshake as it travels.
func record(piece []byte) []byte {
	return append(binary.BigEndian.AppendUint16([]byte{22, 3, 1}, uint16(len(piece))), piece...)
}

// clientHello is a handshake message without a byte that ends a line.
func clientHello(name, how string) []byte {
	list := binary.BigEndian.AppendUint16([]byte{0}, uint16(len(name)))
	list = append(list, name...)
	names := binary.BigEndian.AppendUint16(nil, uint16(len(list)))
	names = append(names, list...)
	extension := binary.BigEndian.AppendUint16([]byte{0, 0}, uint16(len(names)))
	extension = append(extension, names...)
	extensions := []byte{0, 43, 0, 3, 2, 3, 4} // TLS 1.3
	switch how {
	case "none":
	case "twice":
		extensions = append(append(extensions, extension...), extension...)
	default:
		extensions = append(extensions, extension...)
	}
	body := append([]byte{3, 3}, make([]byte, 32)...)
	body = append(body, 0)                // no session
	body = append(body, 0, 2, 0x13, 0x01) // TLS_AES_128_GCM_SHA256
	body = append(body, 1, 0)             // not compressed
	body = append(binary.BigEndian.AppendUint16(body, uint16(len(extensions))), extensions...)
	return append([]byte{1, 0, byte(len(body) >> 8), byte(len(body))}, body...)
}
