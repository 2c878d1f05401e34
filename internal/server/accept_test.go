package server

import (
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
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
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	left := &atomic.Int32{}
	left.Store(3)
	served := make(chan error, 1)
	go func() { served <- s.Serve(short{l, left}) }() // ends with the listener
	t.Cleanup(func() { l.Close(); <-served })
	conn, err := net.Dial("tcp", l.Addr().String())
	must(t, err)
	defer conn.Close()
	_, err = conn.Write([]byte("GET /healthz HTTP/1.0\r\n\r\n"))
	must(t, err)
	if _, err := conn.Read(make([]byte, 1)); err != nil {
		t.Errorf("no answer: %v", err)
	}
}
