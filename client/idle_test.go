package client

import (
	"context"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"

	"github.com/toold/toold/internal/must"
)

// pipes is a listener whose connections are made by dial.
type pipes struct{ made, closed chan net.Conn }

func (p pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.made:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p pipes) Close() error { close(p.closed); return nil }

func (p pipes) Addr() net.Addr { return &net.UnixAddr{} }

func (p pipes) dial(context.Context) (net.Conn, error) {
	here, there := net.Pipe()
	p.made <- there
	return here, nil
}

// limits.ping may be an hour.
func TestAnIdleConnectionLastsWhileTheDaemonAnswers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := pipes{make(chan net.Conn), make(chan net.Conn)}
		stall := make(chan struct{})
		server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			conn := must.Get((&websocket.Upgrader{}).Upgrade(w, r, nil))(t)
			defer conn.Close()
			pong := conn.PingHandler()
			conn.SetPingHandler(func(data string) error {
				select {
				case <-stall:
					return nil
				default:
					return pong(data)
				}
			})
			d := &daemon{t, conn}
			d.receiveType("hello")
			d.send(ack)
			d.receive()
		})}
		go server.Serve(p)
		defer server.Close()
		c := must.Get(Dial(t.Context(), Options{Dial: p.dial}))(t)
		defer c.Close()
		select {
		case <-c.Done():
			t.Error("the connection ended while the daemon answered")
		case <-time.After(2 * time.Hour):
		}
		close(stall)
		<-c.Done()
	})
}
