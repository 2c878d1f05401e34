//go:build linux && (amd64 || arm64)

package helper

import (
	"encoding/binary"
	"errors"
	"slices"
	"strconv"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// connection is a connect(2) that the broker performs for a process of the call.
type connection struct {
	socket  int    // a copy of the process's descriptor
	address []byte // a struct sockaddr
	file    int    // file of a local socket; -1 = none
	own     bool   // the listener must be a process of the call
	limit   time.Duration
	begun   time.Time
}

func (c *connection) close() {
	for _, fd := range []int{c.socket, c.file} {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
}

// pin opens the file of a local socket as the thread would, so that the connection is to that file even if the path
// changes. It does not follow the magic links of /proc, which bypass paths.
func (c *connection) pin(thread int, path string) error {
	from, err := unix.Open("/proc/"+strconv.Itoa(thread)+"/cwd", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return unix.EACCES
	}
	defer unix.Close(from)
	c.file, err = unix.Openat2(from, path, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_MAGICLINKS})
	if err != nil {
		c.file = -1
		return err
	}
	name := "/proc/self/fd/" + strconv.Itoa(c.file)
	c.address = append(binary.NativeEndian.AppendUint16(nil, unix.AF_UNIX), append([]byte(name), 0)...)
	return nil
}

// shortest is the shortest timeout of the kernel; zero means no timeout.
const shortest = time.Microsecond

// try connects without blocking. waits reports whether connect(2) would block.
func (c *connection) try() (waits bool, err error) {
	flags, err := unix.FcntlInt(uintptr(c.socket), unix.F_GETFL, 0)
	if err != nil {
		return false, err
	}
	if flags&unix.O_NONBLOCK != 0 {
		return false, c.finish(c.connect())
	}
	usual, err := unix.GetsockoptTimeval(c.socket, unix.SOL_SOCKET, unix.SO_SNDTIMEO)
	if err != nil {
		return false, err
	}
	soon := unix.NsecToTimeval(shortest.Nanoseconds())
	if err := unix.SetsockoptTimeval(c.socket, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &soon); err != nil {
		return false, err
	}
	err = c.connect()
	if bad := unix.SetsockoptTimeval(c.socket, unix.SOL_SOCKET, unix.SO_SNDTIMEO, usual); bad != nil {
		return false, bad
	}
	if !underWay(err) {
		return false, c.finish(err)
	}
	if c.begun.IsZero() {
		c.begun, c.limit = time.Now(), time.Duration(usual.Nano())
	}
	if c.limit > 0 && time.Since(c.begun) > c.limit {
		return false, err
	}
	return true, nil
}

// underWay reports whether a connect may still succeed. Signals to the helper interrupt it as well.
func underWay(err error) bool {
	return slices.ContainsFunc([]error{unix.EAGAIN, unix.EINPROGRESS, unix.EALREADY, unix.EINTR}, func(e error) bool { return errors.Is(err, e) })
}

func (c *connection) connect() error {
	_, _, e := unix.Syscall(unix.SYS_CONNECT, uintptr(c.socket), uintptr(unsafe.Pointer(&c.address[0])), uintptr(len(c.address)))
	if e != 0 {
		return e
	}
	return nil
}

// knock reports, with a socket of the helper, whether a listener exists.
func (c *connection) knock() error {
	kind, err := unix.GetsockoptInt(c.socket, unix.SOL_SOCKET, unix.SO_TYPE)
	if err != nil {
		return err
	}
	own, err := unix.Socket(unix.AF_UNIX, kind|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(own)
	knocker := connection{socket: own, address: c.address}
	if err := knocker.connect(); err != nil && !errors.Is(err, unix.EAGAIN) {
		return err
	}
	return errRefused
}

// finish checks the listener if it must be a process of the call: a process of the machine has no pid in the call
// (unix(7), SO_PEERCRED).
func (c *connection) finish(err error) error {
	if err != nil || !c.own {
		return err
	}
	peer, err := unix.GetsockoptUcred(c.socket, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err == nil && peer.Pid != 0 {
		return nil
	}
	_ = unix.Shutdown(c.socket, unix.SHUT_RDWR)
	return errRefused
}

// retry retries until the connection succeeds, fails or times out, or its process has ended.
func (b *broker) retry(id uint64, c connection) {
	defer c.close()
	const often, seldom = time.Millisecond, 20 * time.Millisecond
	for pause := often; ; pause = min(2*pause, seldom) {
		time.Sleep(pause)
		if !b.waits(id) {
			return
		}
		if waits, err := c.try(); !waits {
			b.refused.note(&c, err)
			b.reply(id, err)
			return
		}
	}
}
