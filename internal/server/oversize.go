package server

import (
	"bufio"
	"fmt"
	"net"
	"net/http"

	"github.com/gorilla/websocket"

	"github.com/toold/toold/message"
)

// The WebSocket library rejects a large frame by its header and closes the connection without a reason. These types
// add the reason. Counting bytes instead would mean to buffer up to the limit first.

type hijacker struct {
	http.ResponseWriter
	limit int64
}

func (h hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(h.ResponseWriter).Hijack()
	if tcp, ok := conn.(*net.TCPConn); ok {
		return tcpConn{tcp, h.limit}, rw, err
	}
	return otherConn{conn, h.limit}, rw, err
}

// tcpConn keeps the methods of *net.TCPConn that write several buffers at once.
type tcpConn struct {
	*net.TCPConn
	limit int64
}

func (c tcpConn) Write(p []byte) (int, error) { return writeWithReason(c.TCPConn, p, c.limit) }

// otherConn is a connection over TLS or a Unix socket.
type otherConn struct {
	net.Conn
	limit int64
}

func (c otherConn) Write(p []byte) (int, error) { return writeWithReason(c.Conn, p, c.limit) }

func (c otherConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// bareTooBig is the library's close frame with status 1009.
const bareTooBig = "\x88\x02\x03\xf1"

// writeWithReason replaces bareTooBig by an error_message and a close frame with a reason.
func writeWithReason(conn net.Conn, p []byte, limit int64) (int, error) {
	if string(p) != bareTooBig {
		return conn.Write(p)
	}
	why := tooBig(limit)
	answer, err := message.Encode(tooBigError(why))
	if err != nil {
		return 0, err
	}
	frames := appendFrame(nil, websocket.TextMessage, answer)
	frames = appendFrame(frames, websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseMessageTooBig, why))
	if _, err := conn.Write(frames); err != nil {
		return 0, err
	}
	return len(p), nil
}

func tooBig(limit int64) string {
	return fmt.Sprintf("a frame may have at most %d bytes (limits.max_frame_bytes)", limit)
}

func tooBigError(why string) *message.Error {
	return message.InvalidFrame.Errorf("%s; nothing of this one was read", why)
}

// appendFrame appends an unmasked frame (RFC 6455 section 5.2) of less than 64 KiB.
func appendFrame(dst []byte, kind int, payload []byte) []byte {
	dst = append(dst, 1<<7|byte(kind))
	if len(payload) < 126 {
		dst = append(dst, byte(len(payload)))
	} else {
		dst = append(dst, 126, byte(len(payload)>>8), byte(len(payload)))
	}
	return append(dst, payload...)
}
