//go:build linux

package main

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// sockets are the attempts with local sockets and terminals.
func sockets() map[string]attempt {
	return map[string]attempt{
		"unix": func(a args) (string, int, error) {
			return local(&unix.SockaddrUnix{Name: a.text(0)}, unix.SOCK_STREAM, a.text(0))
		},
		"unixsq": func(a args) (string, int, error) {
			return local(&unix.SockaddrUnix{Name: a.text(0)}, unix.SOCK_SEQPACKET, a.text(0))
		},
		"abs": func(a args) (string, int, error) {
			return local(&unix.SockaddrUnix{Name: "@" + a.text(0)}, unix.SOCK_STREAM, a.text(0))
		},
		"unixdg": localDatagram, "unixdgpair": pairDatagram, "unixat": localAt, "unixlocal": localServer,
		"socketpair": socketPair, "tiocsti": inject, "tioclinux": consoleIoctl, "ioctl": anyIoctl,
	}
}

func local(to unix.Sockaddr, kind int, name string) (string, int, error) {
	s, err := unix.Socket(unix.AF_UNIX, kind, 0)
	if err != nil {
		return "socket", s, err
	}
	if err := unix.Connect(s, to); err != nil {
		return "connect", -1, err
	}
	talk(s, "UNIXHIT "+name)
	return "connect", 0, nil
}

func localDatagram(a args) (string, int, error) {
	s, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
	if err != nil {
		return "socket", s, err
	}
	return "sendto", 6, unix.Sendto(s, []byte("DGHIT\n"), 0, &unix.SockaddrUnix{Name: a.text(0)})
}

// pairDatagram sends with one of a pair, which need not be connected to its mate.
func pairDatagram(a args) (string, int, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
	if err != nil {
		return "socketpair", -1, err
	}
	return "sendto", 6, unix.Sendto(pair[0], []byte("DGHIT\n"), 0, &unix.SockaddrUnix{Name: a.text(0)})
}

// localAt connects through a descriptor of the socket's file.
func localAt(a args) (string, int, error) {
	fd, err := unix.Open(a.text(0), unix.O_PATH, 0)
	if err != nil {
		return "open", -1, err
	}
	return local(&unix.SockaddrUnix{Name: "/proc/self/fd/" + itoa(fd)}, unix.SOCK_STREAM, a.text(0))
}

// localServer is what many tools do within a call: it must work.
func localServer(a args) (string, int, error) {
	at := &unix.SockaddrUnix{Name: a.text(0)}
	os.Remove(a.text(0))
	defer os.Remove(a.text(0))
	server, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return "socket", server, err
	}
	if err := unix.Bind(server, at); err != nil {
		return "bind", -1, err
	}
	if err := unix.Listen(server, 1); err != nil {
		return "listen", -1, err
	}
	client, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return "socket", client, err
	}
	return "unix-local", 0, unix.Connect(client, at)
}

func socketPair(args) (string, int, error) {
	_, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	return "socketpair", 0, err
}

func terminal() int {
	fd, err := unix.Open("/dev/tty", unix.O_RDWR, 0)
	if err != nil {
		return 0
	}
	return fd
}

// inject types into the terminal. A second argument sets a bit of the request
// above those that the kernel looks at.
func inject(a args) (string, int, error) {
	request := uint64(unix.TIOCSTI)
	if a.text(1) != "" {
		request |= 1 << 32
	}
	tty := terminal()
	for _, c := range []byte(a.text(0)) {
		if _, err := call(unix.SYS_IOCTL, uintptr(tty), uintptr(request), uintptr(unsafe.Pointer(&c))); err != nil {
			return "TIOCSTI", -1, err
		}
	}
	return "TIOCSTI", 0, nil
}

func consoleIoctl(args) (string, int, error) {
	b := [32]byte{2} // TIOCL_SETSEL
	n, err := call(unix.SYS_IOCTL, uintptr(terminal()), unix.TIOCLINUX, uintptr(unsafe.Pointer(&b)))
	return "TIOCLINUX", n, err
}

// anyIoctl asks the terminal for something by number.
func anyIoctl(a args) (string, int, error) {
	var b [128]byte
	n, err := call(unix.SYS_IOCTL, uintptr(terminal()), uintptr(a.number(0)), uintptr(unsafe.Pointer(&b)))
	return "ioctl", n, err
}
