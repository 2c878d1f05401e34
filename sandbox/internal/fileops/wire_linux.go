package fileops

import (
	"encoding/binary"
	"errors"
	"io"
	"strings"

	"golang.org/x/sys/unix"
)

// Each request and each answer is one packet, which may carry descriptors.

// The kinds of requests.
const (
	askOpen    = 'o' // answered with the file
	askOpenDir = 'l' // answered with the directory
	askBegin   = 'b' // carries the content and, if there is one, the old file; answered with the pending file
	askCommit  = 'c' // commits the connection's last pending file
	askDiscard = 'd' // discards it
	askRemove  = 'r' // carries the old file
)

// mostBytes is larger than any request or answer.
const mostBytes = 8 << 10

type question struct {
	kind    byte
	parents bool
	old     bool // the old file is attached
	private bool
	seen    *State // nil = not checked
	path    string
}

// takes reports whether a request may carry n descriptors.
func (q question) takes(n int) bool {
	switch {
	case q.kind == askBegin && q.old:
		return n == 2
	case q.kind == askBegin:
		return n == 1
	case q.kind == askRemove:
		return n == 1 && q.old
	}
	return n == 0
}

func (q question) encode() []byte {
	flags, seen := byte(0), State{}
	for i, set := range []bool{q.parents, q.old, q.seen != nil, q.private} {
		if set {
			flags |= 1 << i
		}
	}
	if q.seen != nil {
		seen = *q.seen
	}
	b := append(make([]byte, 0, 32+len(q.path)), q.kind, flags)
	b = binary.LittleEndian.AppendUint64(b, uint64(seen.Changed))
	b = binary.LittleEndian.AppendUint64(b, uint64(seen.Size))
	return append(b, q.path...)
}

var errGarbled = errors.New("garbled message")

func decodeQuestion(b []byte) (question, error) {
	const fixed = 2 + 2*8
	if len(b) < fixed || len(b) >= mostBytes {
		return question{}, errGarbled
	}
	q := question{kind: b[0], parents: b[1]&1 != 0, old: b[1]&2 != 0, private: b[1]&8 != 0, path: string(b[fixed:])}
	if b[1]&4 != 0 {
		q.seen = &State{int64(binary.LittleEndian.Uint64(b[2:])), int64(binary.LittleEndian.Uint64(b[10:]))}
	}
	return q, nil
}

// outcomes are the errors that errors.Is recognises on the other side.
var outcomes = [...]error{nil, nil, ErrChanged, ErrUnsynced}

// failed is an error of the worker for which errors.Is returns the same as there.
type failed struct {
	text string
	is   []error
}

func (f *failed) Error() string   { return f.text }
func (f *failed) Unwrap() []error { return f.is }

// answerOf encodes an error or nil: the index of its outcome, its errno (0 = none) in four bytes, and its text.
func answerOf(err error) []byte {
	if err == nil {
		return make([]byte, 5)
	}
	b := []byte{1, 0, 0, 0, 0}
	for i, is := range outcomes {
		if is != nil && errors.Is(err, is) {
			b[0] = byte(i)
		}
	}
	if no, is := errors.AsType[unix.Errno](err); is {
		binary.LittleEndian.PutUint32(b[1:], uint32(no))
	}
	text := strings.ToValidUTF8(err.Error(), "?")
	return append(b, text[:min(len(text), mostBytes/2)]...)
}

func errorOf(b []byte) error {
	if len(b) < 5 || int(b[0]) >= len(outcomes) {
		return errGarbled
	}
	if b[0] == 0 {
		return nil
	}
	f := &failed{text: string(b[5:])}
	if errno := binary.LittleEndian.Uint32(b[1:]); errno != 0 {
		f.is = append(f.is, unix.Errno(errno))
	}
	if outcome := outcomes[b[0]]; outcome != nil {
		f.is = append(f.is, outcome)
	}
	return f
}

// end is one end of a packet socket. It is not safe for concurrent use.
type end struct {
	socket int
	packet [mostBytes]byte
	rights [64]byte // larger than CmsgSpace for the descriptors of one packet
}

func (e *end) send(b []byte, fds ...int) error {
	var rights []byte
	if len(fds) > 0 {
		rights = unix.UnixRights(fds...)
	}
	for {
		err := unix.Sendmsg(e.socket, b, rights, nil, unix.MSG_NOSIGNAL)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// receive waits for a packet. It returns io.EOF if the other end is closed. The bytes are valid until the next
// packet. The caller must close the descriptors.
func (e *end) receive() (b []byte, fds []int, err error) {
	for {
		n, oobn, flags, _, err := unix.Recvmsg(e.socket, e.packet[:], e.rights[:], unix.MSG_CMSG_CLOEXEC)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return nil, nil, err
		case n == 0:
			return nil, nil, io.EOF
		}
		fds, err = passed(e.rights[:oobn])
		switch {
		case err != nil:
		case flags&unix.MSG_CTRUNC != 0:
			err = unix.EMFILE // the descriptor limit was reached
		case flags&unix.MSG_TRUNC != 0:
			err = errGarbled
		}
		if err != nil {
			closeAll(fds)
		}
		return e.packet[:n], fds, err
	}
}

func passed(oob []byte) ([]int, error) {
	if len(oob) == 0 {
		return nil, nil
	}
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil || len(messages) != 1 {
		return nil, errors.Join(errGarbled, err)
	}
	return unix.ParseUnixRights(&messages[0])
}

func closeAll(fds []int) {
	for _, fd := range fds {
		unix.Close(fd)
	}
}
