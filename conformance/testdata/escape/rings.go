//go:build linux

package main

import (
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// rings are the attempts through io_uring, whose requests no filter sees
// (io_uring(7)).
func rings() map[string]attempt {
	return map[string]attempt{
		"uring-setup": func(args) (string, int, error) {
			r := ring{}
			fd, err := r.setup()
			return "io_uring_setup", fd, err
		},
		"uring-tcp": func(a args) (string, int, error) {
			return ringConnect(unix.AF_INET, func() []byte { return rawInet(a.text(0), a.number(1)) })
		},
		"uring-unix": func(a args) (string, int, error) {
			return ringConnect(unix.AF_UNIX, func() []byte { return rawUnix(a.text(0)) })
		},
	}
}

// The operations used here, and the places of a submission's fields.
const (
	opConnect, opOpenAt, opSocket = 16, 18, 45

	atFD, atOffset, atAddress, atLength, atFlags = 4, 8, 16, 24, 28
)

type ring struct {
	fd         int
	params     [30]uint32 // struct io_uring_params
	sq, cq     []byte
	entries    []byte
	submission [64]byte
}

func (r *ring) setup() (int, error) {
	fd, err := call(unix.SYS_IO_URING_SETUP, 4, uintptr(unsafe.Pointer(&r.params)))
	r.fd = fd
	return fd, err
}

// open maps the rings: io_sqring_offsets begin at word 10 of the parameters,
// io_cqring_offsets at word 20.
func (r *ring) open() (err error) {
	if _, err = r.setup(); err != nil {
		return err
	}
	sq, cq := r.params[10:20], r.params[20:30]
	const both = unix.PROT_READ | unix.PROT_WRITE
	if r.sq, err = unix.Mmap(r.fd, 0, int(sq[6]+4*r.params[0]), both, unix.MAP_SHARED|unix.MAP_POPULATE); err != nil {
		return err
	}
	if r.cq, err = unix.Mmap(r.fd, 0x8000000, int(cq[5]+16*r.params[1]), both, unix.MAP_SHARED|unix.MAP_POPULATE); err != nil {
		return err
	}
	r.entries, err = unix.Mmap(r.fd, 0x10000000, int(64*r.params[0]), both, unix.MAP_SHARED|unix.MAP_POPULATE)
	return err
}

func word(b []byte, at uint32) *uint32 { return (*uint32)(unsafe.Pointer(&b[at])) }

// do carries out one request and returns its result.
func (r *ring) do(op byte, fd int, offset, address uint64, length, flags uint32) (int, error) {
	e := r.submission[:]
	clear(e)
	e[0] = op
	*word(e, atFD) = uint32(fd)
	*(*uint64)(unsafe.Pointer(&e[atOffset])) = offset
	*(*uint64)(unsafe.Pointer(&e[atAddress])) = address
	*word(e, atLength), *word(e, atFlags) = length, flags
	sq, cq := r.params[10:20], r.params[20:30]
	tail := *word(r.sq, sq[1])
	slot := tail & *word(r.sq, sq[2])
	copy(r.entries[64*slot:], e)
	*word(r.sq, sq[6]+4*slot) = slot
	atomic.StoreUint32(word(r.sq, sq[1]), tail+1)
	if _, err := call(unix.SYS_IO_URING_ENTER, uintptr(r.fd), 1, 1, 1 /* GETEVENTS */); err != nil {
		return -1, err
	}
	head := *word(r.cq, cq[0])
	got := int32(*word(r.cq, cq[5]+16*(head&*word(r.cq, cq[2]))+8))
	atomic.StoreUint32(word(r.cq, cq[0]), head+1)
	if got < 0 {
		return -1, unix.Errno(-got)
	}
	return int(got), nil
}

func ringConnect(family int, address func() []byte) (string, int, error) {
	r := ring{}
	if err := r.open(); err != nil {
		return "io_uring_setup", -1, err
	}
	s, err := r.do(opSocket, family, unix.SOCK_STREAM, 0, 0, 0)
	if err != nil {
		return "IORING_OP_SOCKET", -1, err
	}
	to := address()
	if _, err := r.do(opConnect, s, uint64(len(to)), uint64(uintptr(unsafe.Pointer(&to[0]))), 0, 0); err != nil {
		return "IORING_OP_CONNECT", -1, err
	}
	unix.Write(s, []byte("URINGHIT\n"))
	return "uring connect", 0, nil
}

func ringOpen(a args) (string, int, error) {
	r := ring{}
	if err := r.open(); err != nil {
		return "io_uring_setup", -1, err
	}
	path := append([]byte(a.text(0)), 0)
	here := unix.AT_FDCWD
	fd, err := r.do(opOpenAt, here, 0, uint64(uintptr(unsafe.Pointer(&path[0]))), 0o644, unix.O_WRONLY|unix.O_CREAT)
	if err == nil {
		unix.Write(fd, []byte("x"))
	}
	return "IORING_OP_OPENAT", fd, err
}

// rawInet and rawUnix are addresses in the kernel's form (ip(7), unix(7)).
func rawInet(host string, port int) []byte {
	to, _ := address(host, port)
	b := make([]byte, 16)
	b[0], b[2], b[3] = unix.AF_INET, byte(port>>8), byte(port)
	if v4, ok := to.(*unix.SockaddrInet4); ok {
		copy(b[4:], v4.Addr[:])
	}
	return b
}

func rawUnix(path string) []byte {
	b := make([]byte, 110)
	b[0] = unix.AF_UNIX
	copy(b[2:109], path)
	return b
}
