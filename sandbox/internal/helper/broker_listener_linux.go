//go:build linux && (amd64 || arm64)

package helper

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// listeners lists the listening local sockets of a network namespace (sock_diag(7)); a call with its own network sees
// only its own. The list is read before connecting: after it, another thread could already write to a socket that is
// about to be refused.
type listeners struct {
	netlink int
	mounts  mountTable // of the call's view, which no longer change
}

// newListeners returns nil if the kernel lacks support.
func newListeners() *listeners {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return nil
	}
	mounts, err := readMountTable()
	l := &listeners{fd, mounts}
	if err != nil || l.each(func(socketFile) bool { return true }) != nil {
		unix.Close(fd)
		return nil
	}
	return l
}

func (l *listeners) close() {
	if l != nil {
		unix.Close(l.netlink)
	}
}

// socketFile identifies the file of a socket as sock_diag does: by half of the inode number, and by the device of the
// file system, which differs from that in stat(2).
type socketFile struct{ inode, device uint32 }

// has reports whether a process listens on the socket with this file.
func (l *listeners) has(file int) (bool, error) {
	var st unix.Statx_t
	err := unix.Statx(file, "", unix.AT_EMPTY_PATH, unix.STATX_INO|unix.STATX_MNT_ID, &st)
	if err != nil {
		return false, err
	}
	mount, ok := l.mounts[st.Mnt_id]
	if !ok {
		return false, unix.EACCES
	}
	found := false
	err = l.each(func(p socketFile) bool {
		found = p == socketFile{uint32(st.Ino), mount.device}
		return !found
	})
	return found, err
}

// each calls use for all listening sockets. It always reads the complete answer of the kernel.
func (l *listeners) each(use func(socketFile) bool) error {
	const (
		bodySize         = 16 + 24
		dump             = unix.NLM_F_REQUEST | unix.NLM_F_DUMP
		stateListen      = 1 << 10
		showFile    byte = 2
	)
	request := make([]byte, bodySize) // struct nlmsghdr, struct unix_diag_req
	binary.NativeEndian.PutUint32(request, bodySize)
	binary.NativeEndian.PutUint16(request[4:], unix.SOCK_DIAG_BY_FAMILY)
	binary.NativeEndian.PutUint16(request[6:], dump)
	request[16] = unix.AF_UNIX
	binary.NativeEndian.PutUint32(request[20:], stateListen)
	request[28] = showFile
	if err := unix.Sendto(l.netlink, request, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	more := true
	answer := make([]byte, 32<<10)
	for {
		n, _, err := unix.Recvfrom(l.netlink, answer, 0)
		if err != nil {
			return err
		}
		end, err := eachMessage(answer[:n], func(body []byte) {
			if p, ok := socketFileOf(body); ok && more {
				more = use(p)
			}
		})
		if end || err != nil {
			return err
		}
	}
}

// eachMessage splits an answer. end reports whether it was the last one.
func eachMessage(b []byte, use func(body []byte)) (end bool, err error) {
	for len(b) >= 16 {
		size := int(binary.NativeEndian.Uint32(b))
		if size < 16 || size > len(b) {
			return true, unix.EBADMSG
		}
		switch binary.NativeEndian.Uint16(b[4:]) {
		case unix.NLMSG_DONE:
			return true, nil
		case unix.NLMSG_ERROR:
			return true, unix.EOPNOTSUPP
		}
		use(b[16:size])
		b = b[min(len(b), (size+3)&^3):]
	}
	return false, nil
}

// socketFileOf finds the attribute UNIX_DIAG_VFS after a struct unix_diag_msg.
func socketFileOf(body []byte) (socketFile, bool) {
	const fixed, vfs = 16, 1
	for b := body[min(fixed, len(body)):]; len(b) >= 4; {
		size, kind := int(binary.NativeEndian.Uint16(b)), binary.NativeEndian.Uint16(b[2:])
		if size < 4 || size > len(b) {
			break
		}
		if kind == vfs && size >= 12 {
			return socketFile{binary.NativeEndian.Uint32(b[4:]), binary.NativeEndian.Uint32(b[8:])}, true
		}
		b = b[min(len(b), (size+3)&^3):]
	}
	return socketFile{}, false
}
