package fileops

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// ErrLost is returned if the worker did not answer because it has exited or the connection was cut. The request may
// have been carried out.
var ErrLost = errors.New("the process that opens files is gone")

// Conn calls the functions of this package in a worker. Only Cut may be called concurrently with other methods.
type Conn struct{ end }

// Dial connects to the worker of a listener. That the worker is dead may only be detected by the first request.
func Dial(listener *os.File) (*Conn, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fds[1])
	if err := (&end{socket: int(listener.Fd())}).send([]byte{0}, fds[1]); err != nil {
		unix.Close(fds[0])
		return nil, lost(err)
	}
	return &Conn{end{socket: fds[0]}}, nil
}

// Open calls the function Open in the worker, and meanwhile during that.
func (c *Conn) Open(path string, meanwhile func()) (fd int, err error) {
	return c.askFile(question{kind: askOpen, path: path}, meanwhile)
}

// OpenDir calls the function OpenDir in the worker, and meanwhile during that.
func (c *Conn) OpenDir(path string, meanwhile func()) (fd int, err error) {
	return c.askFile(question{kind: askOpenDir, path: path}, meanwhile)
}

// Begin calls the function Begin in the worker. content is read from its start, whatever its offset. Begin returns
// PendingFile.File, which the caller closes. What is not committed is discarded with the connection.
func (c *Conn) Begin(change Change, content *os.File) (*os.File, error) {
	fds := []int{int(content.Fd())}
	if change.Old != nil {
		fds = append(fds, int(change.Old.Fd()))
	}
	q := question{kind: askBegin, parents: change.Parents, private: change.Private, old: change.Old != nil, seen: change.Seen, path: change.Path}
	fd, err := c.askFile(q, nil, fds...)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "draft"), nil
}

// Commit calls PendingFile.Commit for the last pending file.
func (c *Conn) Commit() error {
	return c.do(question{kind: askCommit})
}

// Discard calls PendingFile.Discard for the last pending file.
func (c *Conn) Discard() error {
	return c.do(question{kind: askDiscard})
}

// Remove calls the function Remove in the worker.
func (c *Conn) Remove(change Change) error {
	return c.do(question{kind: askRemove, old: true, seen: change.Seen, path: change.Path}, int(change.Old.Fd()))
}

func (c *Conn) do(q question, fds ...int) error {
	got, err := c.ask(q, nil, fds...)
	closeAll(got)
	return err
}

func (c *Conn) askFile(q question, meanwhile func(), fds ...int) (int, error) {
	got, err := c.ask(q, meanwhile, fds...)
	if err == nil && len(got) != 1 {
		err = lost(errGarbled)
	}
	if err != nil {
		closeAll(got)
		return -1, err
	}
	return got[0], nil
}

func (c *Conn) ask(q question, meanwhile func(), fds ...int) ([]int, error) {
	if len(q.path) > unix.PathMax {
		return nil, unix.ENAMETOOLONG
	}
	if err := c.send(q.encode(), fds...); err != nil {
		return nil, lost(err)
	}
	if meanwhile != nil {
		meanwhile()
	}
	b, got, err := c.receive()
	if err != nil {
		return nil, lost(err)
	}
	return got, errorOf(b)
}

// Cut makes a blocked request fail with ErrLost.
func (c *Conn) Cut() { _ = unix.Shutdown(c.socket, unix.SHUT_RDWR) }

// Close closes the connection. No request must be running.
func (c *Conn) Close() { unix.Close(c.socket) }

func lost(err error) error { return fmt.Errorf("%w: %w", ErrLost, err) }
