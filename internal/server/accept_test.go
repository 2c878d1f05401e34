package server

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http/httptest"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/toold/toold/internal/must"
)

// short is a listener whose first connections meet a lack of kernel resources.
type short struct {
	net.Listener
	left *atomic.Int32
}

func (s short) Accept() (net.Conn, error) {
	if n := s.left.Add(-1); n >= 0 {
		lack := []syscall.Errno{syscall.ENOSPC, syscall.ENOMEM, syscall.ENOBUFS}[n%3]
		return nil, &net.OpError{Op: "accept", Net: "tcp", Addr: s.Addr(), Err: os.NewSyscallError("epoll_ctl", lack)}
	}
	return s.Listener.Accept()
}

func TestTheServerSurvivesALackOfKernelResources(t *testing.T) {
	t.Parallel()
	s, _ := newTestServer(t, nil)
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	left := &atomic.Int32{}
	left.Store(3)
	served := make(chan error, 1)
	go func() { served <- s.Serve(short{l, left}) }() // ends with the listener
	t.Cleanup(func() { l.Close(); <-served })
	conn := must.Get(net.Dial("tcp", l.Addr().String()))(t)
	defer conn.Close()
	must.Get(conn.Write([]byte("GET /healthz HTTP/1.0\r\n\r\n")))(t)
	if _, err := conn.Read(make([]byte, 1)); err != nil {
		t.Errorf("no answer: %v", err)
	}
}

// Whoever has no token takes no descriptors from those who have one.
func TestConnectionsWithoutATokenAreBounded(t *testing.T) {
	t.Parallel()
	s, _ := newTestServer(t, nil)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.Do(t, err)
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }() // ends with Shutdown
	t.Cleanup(func() { must.Do(t, s.Shutdown(context.Background())); <-served })
	send := func(request string) net.Conn {
		conn, err := net.Dial("tcp", l.Addr().String())
		must.Do(t, err)
		t.Cleanup(func() { conn.Close() })
		_, err = conn.Write([]byte(request + "\r\nHost: 127.0.0.1\r\n"))
		must.Do(t, err)
		return conn
	}
	session := dial(t, &httptest.Server{URL: "http://" + l.Addr().String()})
	var all []net.Conn
	for range 300 {
		all = append(all, send("GET /healthz HTTP/1.1"))
	}
	must.Do(t, all[0].SetReadDeadline(time.Now().Add(time.Minute)))
	if _, err := all[0].Read(make([]byte, 1)); !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the first connection without a request was answered with %v; want its end", err)
	}
	last := all[len(all)-1]
	_, err = last.Write([]byte("\r\n"))
	must.Do(t, err)
	if _, err := last.Read(make([]byte, 1)); err != nil {
		t.Errorf("the last one got no answer: %v", err)
	}
	write(t, session, `{}`)
	read(t, session) // that it is no frame
}
