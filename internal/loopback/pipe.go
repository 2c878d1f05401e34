package loopback

import (
	"context"
	"net"
	"sync"
)

// A Pipe is a listener for connections within this process.
type Pipe struct {
	waiting chan net.Conn
	closed  chan struct{}
	once    sync.Once
}

// NewPipe returns a Pipe. It must be closed.
func NewPipe() *Pipe {
	return &Pipe{waiting: make(chan net.Conn), closed: make(chan struct{})}
}

// Dial connects when Accept is called.
func (p *Pipe) Dial(ctx context.Context) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case p.waiting <- far:
		return near, nil
	case <-p.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Accept waits for a connection.
func (p *Pipe) Accept() (net.Conn, error) {
	select {
	case conn := <-p.waiting:
		return conn, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// Close ends Accept and Dial, and no connection.
func (p *Pipe) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

// Addr returns a meaningless address.
func (p *Pipe) Addr() net.Addr { return pipeAddr{} }

type pipeAddr struct{}

func (pipeAddr) Network() string { return "pipe" }
func (pipeAddr) String() string  { return "pipe" }
