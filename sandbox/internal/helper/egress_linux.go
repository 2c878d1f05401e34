package helper

import (
	"encoding/binary"
	"errors"
	"os"
	"path"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/internal/paths"
)

// openProxyListeners routes every IPv4 address to the helper's own network, and listens there for DNS and on the ports.
// The local address of an accepted connection is the one that the program dialed. Another call uses the sockets only if
// nothing was ever sent in this network (traces).
func openProxyListeners(ports []uint64) (fds []int, err error) {
	if err := errors.Join(takeAllAddresses(), haveAddress()); err != nil {
		return nil, stage("make all addresses local", err)
	}
	dns, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, stage("listen for names", err)
	}
	if err := unix.Bind(dns, &unix.SockaddrInet4{Port: 53, Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return nil, stage("listen for names", err)
	}
	fds = []int{dns}
	for _, port := range ports {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
		if err != nil {
			return nil, stage("listen for connections", err)
		}
		fds = append(fds, fd)
		if err := unix.Bind(fd, &unix.SockaddrInet4{Port: int(port)}); err != nil {
			return nil, stage("listen for connections", err)
		}
		if err := unix.Listen(fd, 128); err != nil {
			return nil, stage("listen for connections", err)
		}
	}
	return fds, nil
}

// sendListeners sends the sockets for the connections of a call to the daemon, if there are any.
func (t *site) sendListeners() error {
	if len(t.listeners) == 0 {
		return nil
	}
	e := Event{Kind: EventListeners}
	return stage("pass the sockets", unix.Sendmsg(ControlFD, e.Encode(), unix.UnixRights(t.listeners...), nil, unix.MSG_NOSIGNAL))
}

// takeAllAddresses adds "local 0.0.0.0/0 dev lo" to the local routing table (rtnetlink(7)), so that every address is
// local.
func takeAllAddresses() error {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	const size = unix.SizeofNlMsghdr + unix.SizeofRtMsg + 8
	const loopback = 1 // index of lo in a new namespace
	m := make([]byte, 0, size)
	m = binary.NativeEndian.AppendUint32(m, size)
	m = binary.NativeEndian.AppendUint16(m, unix.RTM_NEWROUTE)
	m = binary.NativeEndian.AppendUint16(m, unix.NLM_F_REQUEST|unix.NLM_F_CREATE|unix.NLM_F_ACK)
	m = append(m, 1, 0, 0, 0, 0, 0, 0, 0) // sequence and port number
	m = append(m, unix.AF_INET, 0, 0, 0, unix.RT_TABLE_LOCAL, unix.RTPROT_BOOT, unix.RT_SCOPE_HOST, unix.RTN_LOCAL, 0, 0, 0, 0)
	m = binary.NativeEndian.AppendUint16(m, 8)
	m = binary.NativeEndian.AppendUint16(m, unix.RTA_OIF)
	m = binary.NativeEndian.AppendUint32(m, loopback)
	if err := unix.Sendto(fd, m, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	reply := make([]byte, 1<<10)
	n, _, err := unix.Recvfrom(fd, reply, 0)
	if err != nil {
		return err
	}
	if n < unix.SizeofNlMsghdr+4 {
		return errGarbled
	}
	if no := int32(binary.NativeEndian.Uint32(reply[unix.SizeofNlMsghdr:])); no != 0 {
		return unix.Errno(-no)
	}
	return nil
}

// haveAddress gives the network a non-loopback address, without which getaddrinfo(3) with AI_ADDRCONFIG finds no
// names. It is the last of the addresses for names, which a call never reaches.
func haveAddress() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	own, err := unix.NewIfreq("lo:1")
	if err != nil {
		return err
	}
	if err := own.SetInet4Addr([]byte{198, 19, 255, 254}); err != nil {
		return err
	}
	return unix.IoctlIfreq(fd, unix.SIOCSIFADDR, own)
}

// resolverText sends queries to the daemon. It sets the longest timeout that resolvers support, since a person may
// have to answer (resolv.conf(5)).
const resolverText = "nameserver 127.0.0.1\noptions timeout:30 attempts:5\n"

// resolverFile contains resolverText; /dev already exists and is private.
const resolverFile = "/dev/.resolv"

// ownResolver returns a tree that replaces the target of /etc/resolv.conf by resolverText. Without such a file,
// programs query 127.0.0.1 by default.
func ownResolver() ([]tree, error) {
	to, err := paths.Existing("/etc/resolv.conf")
	if err != nil {
		if to, err = os.Readlink("/etc/resolv.conf"); err != nil {
			return nil, nil
		}
		if !path.IsAbs(to) {
			to = path.Join("/etc", to)
		}
		if !Covered(to) {
			return nil, nil // dangling, and its target cannot be created
		}
	}
	if err := os.WriteFile(resolverFile, []byte(resolverText), 0o444); err != nil {
		return nil, stage("make a resolv.conf", err)
	}
	t, err := takeLocked(resolverFile)
	t.path = to
	return []tree{t}, stage("make a resolv.conf", err)
}
