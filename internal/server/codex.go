package server

import (
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

// serveCodex serves a connection that speaks the exec-server protocol.
func (s *Server) serveCodex(w http.ResponseWriter, r *http.Request, token Token) {
	s.connect(w, r, token, (*session).runCodex)
}

// runCodex runs a session whose frames are those of the exec-server protocol.
func (ss *session) runCodex() {
	defer ss.conn.Close()
	kept := ss.srv.kept.account(ss.token.Name)
	c := ss.srv.opt.Codex.Connect(ss.token.Name, func(frame []byte) error { return ss.writeFrame(websocket.TextMessage, frame) },
		kept.take)
	ss.take = func(kind int, frame []byte) bool {
		if kind != websocket.TextMessage {
			ss.farewell(websocket.CloseUnsupportedData, "expected text frames")
			return false
		}
		ss.safely("", func() { c.Accept(frame) })
		return true
	}
	ss.out = newOutbox(func() {}) // it is not written, and must not wake Run, which would take it for the end
	ss.bye = func(code int, text string) {
		ss.sendClose(code, text, lingerFor)
		ss.endWriting()
	}
	gone := make(chan struct{})
	var work sync.WaitGroup
	// Ends with the connection, or when toold stops and everything is written; then it ends the reader.
	work.Go(func() {
		c.Run(ss.wake)
		ss.farewell(websocket.CloseGoingAway, "toold is stopping")
		ss.conn.Close()
	})
	// Ends with the reader.
	work.Go(func() { ss.beat(gone) })
	ss.read()
	close(gone)
	c.Close()
	work.Wait()
}

// beat sends pings until gone is closed. It closes the connection if one fails or the token is revoked.
func (ss *session) beat(gone <-chan struct{}) {
	ticker := time.Tick(ss.srv.opt.Ping)
	for {
		select {
		case <-gone:
			return
		case <-ticker:
		}
		if ss.dismissed() {
			ss.conn.Close()
			return
		}
		if err := ss.conn.WriteControl(websocket.PingMessage, nil, time.Now().Add(ss.srv.opt.Idle)); err != nil {
			if !errors.Is(err, websocket.ErrCloseSent) { // after ErrCloseSent the client may still read the close frame
				ss.conn.Close()
			}
			return
		}
	}
}
