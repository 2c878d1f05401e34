//go:build linux && (amd64 || arm64)

package helper

import (
	"encoding/binary"
	"errors"
	"os"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A call can connect to the TCP servers of background calls in the same conversation. Their namespaces remain
// separate: when a program connects to a loopback port on which its own call does not listen, the broker asks the
// helper of the other call. That helper connects in its network and sends the socket, with which the broker replaces
// the program's socket.

const addDescriptor = 0x40182103 // SECCOMP_IOCTL_NOTIF_ADDFD (linux/seccomp.h)

// borrowWithin limits how long the other helper may take.
const borrowWithin = 30 * time.Second

// serveLoopback makes connections in this call's network for requests on fd until the sender closes it. A call with
// hosts by name cannot lend its network, in which every address leads to the daemon.
func (s *Spec) serveLoopback(fd int) {
	defer unix.Close(fd)
	if !s.Loopback || len(s.Ports) > 0 {
		return
	}
	buf := make([]byte, 1+longestAddress)
	for {
		n, err := unix.Read(fd, buf)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || n < 1 {
			return
		}
		var rights []byte
		socket, err := dialLoopback(int(buf[0]), buf[1:n])
		if err == nil {
			rights = unix.UnixRights(socket)
		}
		bad := unix.Sendmsg(fd, []byte{byte(errnoOf(err))}, rights, nil, unix.MSG_NOSIGNAL)
		if err == nil {
			unix.Close(socket)
		}
		if bad != nil {
			return
		}
	}
}

func errnoOf(err error) unix.Errno {
	no := unix.EACCES
	if err == nil {
		return 0
	}
	errors.As(err, &no)
	return no
}

func dialLoopback(domain int, address []byte) (int, error) {
	if _, ok := loopbackPort(domain, address); !ok {
		return -1, unix.EACCES
	}
	socket, err := unix.Socket(domain, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	c := connection{socket: socket, address: address}
	if err = c.connect(); errors.Is(err, unix.EINPROGRESS) {
		err = c.connected(borrowWithin / 2)
	}
	if err != nil {
		unix.Close(socket)
	}
	return socket, err
}

// connected waits for a connection in progress. It does not use a blocking connect, which signals of the runtime or
// of an ending child would interrupt (signal(7)).
func (c *connection) connected(within time.Duration) error {
	for end := time.Now().Add(within); ; {
		left := max(0, time.Until(end).Milliseconds())
		switch n, err := unix.Poll([]unix.PollFd{{Fd: int32(c.socket), Events: unix.POLLOUT}}, int(left)); {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return err
		case n == 0:
			return unix.ETIMEDOUT
		}
		failed, err := unix.GetsockoptInt(c.socket, unix.SOL_SOCKET, unix.SO_ERROR)
		if err == nil && failed != 0 {
			err = unix.Errno(failed)
		}
		return err
	}
}

// loopbackPort returns the port of a struct sockaddr if that is a loopback address or the unspecified address, which
// is equivalent.
func loopbackPort(domain int, address []byte) (uint16, bool) {
	switch {
	case len(address) < 8 || int(binary.NativeEndian.Uint16(address)) != domain:
		return 0, false
	case domain == unix.AF_INET:
		return binary.BigEndian.Uint16(address[2:]), isLocal4([4]byte(address[4:8]))
	case domain == unix.AF_INET6 && len(address) >= 24:
		return binary.BigEndian.Uint16(address[2:]), isLocal6([16]byte(address[8:24]))
	}
	return 0, false
}

func isLocal4(a [4]byte) bool { return a[0] == 127 || a == [4]byte{} }

func isLocal6(a [16]byte) bool {
	if [12]byte(a[:12]) == [12]byte{10: 0xff, 11: 0xff} { // IPv4, mapped
		return isLocal4([4]byte(a[12:]))
	}
	return a == [16]byte{} || a == [16]byte{15: 1}
}

// borrows reports whether a connection may go to another call: TCP, to a loopback port on which this call does not
// listen.
func (b *broker) borrows(c *connection) bool {
	if b.lenders.Load() == nil {
		return false
	}
	domain, err1 := unix.GetsockoptInt(c.socket, unix.SOL_SOCKET, unix.SO_DOMAIN)
	protocol, err2 := unix.GetsockoptInt(c.socket, unix.SOL_SOCKET, unix.SO_PROTOCOL)
	port, ok := loopbackPort(domain, c.address)
	isTCP := err1 == nil && err2 == nil && protocol == unix.IPPROTO_TCP
	return isTCP && ok && !listening(port)
}

// listening reports whether a process of this network listens on a port. It returns true on an error, so that the
// call uses its own network.
func listening(port uint16) bool {
	const listen = "0A"
	suffix := ":" + strings.ToUpper(strconv.FormatUint(uint64(port)|1<<16, 16)[1:])
	for _, file := range []string{"/proc/thread-self/net/tcp", "/proc/thread-self/net/tcp6"} {
		b, err := os.ReadFile(file)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return true
		}
		for line := range strings.Lines(string(b)) {
			if f := strings.Fields(line); len(f) > 3 && f[3] == listen && strings.HasSuffix(f[1], suffix) {
				return true
			}
		}
	}
	return false
}

// borrow asks the other calls in turn for the connection. If none has such a server, it connects normally.
func (b *broker) borrow(n notification, c connection) {
	domain, _ := unix.GetsockoptInt(c.socket, unix.SOL_SOCKET, unix.SO_DOMAIN)
	for _, lender := range *b.lenders.Load() {
		socket, err := b.askLender(lender, append([]byte{byte(domain)}, c.address...))
		if err != nil {
			continue
		}
		err = b.put(&n, &c, socket)
		unix.Close(socket)
		b.end(n.id, &c, err)
		return
	}
	waits, err := c.try()
	if waits {
		b.retry(n.id, c)
		return
	}
	b.end(n.id, &c, err)
}

func (b *broker) askLender(lender int, question []byte) (int, error) {
	b.asking.Lock()
	defer b.asking.Unlock()
	if err := unix.Sendmsg(lender, question, nil, nil, unix.MSG_NOSIGNAL); err != nil {
		return -1, err
	}
	buf := make([]byte, 1)
	n, fds, err := receive(lender, buf)
	switch {
	case err != nil:
		_ = unix.Shutdown(lender, unix.SHUT_RDWR) // a late answer must not be read as the next one
		return -1, err
	case n == 1 && len(fds) == 1:
		return fds[0], nil
	}
	return -1, unix.ECONNREFUSED
}

// put replaces the program's socket, and keeps its flags and options. Duplicates and epoll registrations still refer
// to the old socket.
func (b *broker) put(n *notification, c *connection, socket int) error {
	flags, err := unix.FcntlInt(uintptr(c.socket), unix.F_GETFL, 0)
	if err == nil {
		_, err = unix.FcntlInt(uintptr(socket), unix.F_SETFL, flags)
	}
	if err == nil {
		err = copyOptions(c.socket, socket)
	}
	if err != nil {
		return err
	}
	fd := uint32(n.data.args[0])
	add := struct { // struct seccomp_notif_addfd
		id                             uint64
		flags, source, number, newFlag uint32
	}{n.id, unix.SECCOMP_ADDFD_FLAG_SETFD, uint32(socket), fd, closeOnExec(n.thread, fd)}
	if e := b.control(addDescriptor, unsafe.Pointer(&add)); e != 0 {
		return e
	}
	return nil
}

func closeOnExec(thread, fd uint32) uint32 {
	b, _ := os.ReadFile("/proc/" + strconv.Itoa(int(thread)) + "/fdinfo/" + strconv.Itoa(int(fd)))
	_, rest, _ := strings.Cut(string(b), "flags:")
	text, _, _ := strings.Cut(strings.TrimSpace(rest), "\n")
	flags, _ := strconv.ParseUint(strings.TrimSpace(text), 8, 32)
	return uint32(flags) & unix.O_CLOEXEC
}
