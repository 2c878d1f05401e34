//go:build linux

package main

import (
	"fmt"
	"net"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"
)

// network are the attempts over IP and the families beside it.
func network() map[string]attempt {
	return map[string]attempt{
		"tcp": func(a args) (string, int, error) { return stream(a, 0, "TCPHIT") },
		"mptcp": func(a args) (string, int, error) {
			return stream(a, unix.IPPROTO_MPTCP, "MPTCPHIT")
		},
		"tfo": fastOpen, "udp": datagram, "sock": anySocket, "vsock": vsock, "netlink": netlink,
		"listen": backdoor, "localpair": localPair, "again": again,
	}
}

// address makes the kernel's form of an address, and its family.
func address(host string, port int) (unix.Sockaddr, int) {
	ip, err := netip.ParseAddr(host)
	if err == nil && ip.Is6() {
		return &unix.SockaddrInet6{Port: port, Addr: ip.As16()}, unix.AF_INET6
	}
	if err != nil {
		ip = netip.IPv4Unspecified()
	}
	return &unix.SockaddrInet4{Port: port, Addr: ip.As4()}, unix.AF_INET
}

func stream(a args, protocol int, tag string) (string, int, error) {
	to, family := address(a.text(0), a.number(1))
	s, err := unix.Socket(family, unix.SOCK_STREAM, protocol)
	if err != nil {
		return "socket", s, err
	}
	if err := unix.Connect(s, to); err != nil {
		return "connect", -1, err
	}
	if a.text(2) != "" {
		tag = a.text(2)
	}
	talk(s, tag)
	return "connect", 0, nil
}

// talk says a line and shows the answer.
func talk(s int, line string) {
	unix.Write(s, []byte(line+"\n"))
	answer := make([]byte, 256)
	if n, _ := unix.Read(s, answer); n > 0 {
		fmt.Printf("reply:%s\n", answer[:n])
	}
}

func fastOpen(a args) (string, int, error) {
	to, family := address(a.text(0), a.number(1))
	s, err := unix.Socket(family, unix.SOCK_STREAM, 0)
	if err != nil {
		return "socket", s, err
	}
	err = unix.Sendto(s, []byte("TFOHIT\n"), unix.MSG_FASTOPEN, to)
	if err == nil {
		talk(s, "")
	}
	return "sendto-fastopen", 7, err
}

func datagram(a args) (string, int, error) {
	to, family := address(a.text(0), a.number(1))
	s, err := unix.Socket(family, unix.SOCK_DGRAM, a.number(3))
	if err != nil {
		return "socket", s, err
	}
	return "sendto", len(a.text(2)), unix.Sendto(s, []byte(a.text(2)), 0, to)
}

func anySocket(a args) (string, int, error) {
	s, err := unix.Socket(a.number(0), a.number(1), a.number(2))
	return "socket", s, err
}

func vsock(a args) (string, int, error) {
	s, err := unix.Socket(unix.AF_VSOCK, unix.SOCK_STREAM, 0)
	if err != nil {
		return "socket", s, err
	}
	return "vsock-socket", s, nil
}

func netlink(a args) (string, int, error) {
	s, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW, a.number(0))
	return "netlink", s, err
}

// backdoor listens for others for some seconds.
func backdoor(a args) (string, int, error) {
	l, err := net.Listen("tcp4", fmt.Sprintf("0.0.0.0:%d", a.number(0)))
	if err != nil {
		return "listen", -1, err
	}
	fmt.Println("listening")
	l.(*net.TCPListener).SetDeadline(time.Now().Add(time.Duration(a.number(1)) * time.Second))
	c, err := l.Accept()
	if err != nil {
		return "accept", -1, err
	}
	fmt.Fprintln(c, "BACKDOOR")
	return "accept", 0, c.Close()
}

// localPair is what tests of servers do: it must work.
func localPair(args) (string, int, error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return "bind", -1, err
	}
	c, err := net.Dial("tcp4", l.Addr().String())
	if err != nil {
		return "local-connect", -1, err
	}
	return "local-connect", 0, c.Close()
}
