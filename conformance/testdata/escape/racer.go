//go:build linux

package main

import (
	"fmt"
	"net"
	"os"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// racer connects again and again to a socket of its own while something changes
// under the one who looks: MODE GOOD BAD SECONDS [TRIES], at least so long and so
// often, and with TRIES until a try has connected. Mode 0 changes the address in
// memory, 1 the link that is the address, 2 the descriptor, 3 the folder that holds the
// socket. In mode 4 nothing changes: all go for the bad socket, and another thread
// writes all the time. Whoever gets to the bad socket says RACEHIT.
func racer(a args) int {
	mode, good, bad := a.number(0), a.text(1), a.text(2)
	os.Remove(good)
	l, err := net.Listen("unix", good)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	// Ends with the process.
	go func() {
		for {
			if c, err := l.Accept(); err == nil {
				c.Close()
			}
		}
	}()
	r := race{good: good, bad: bad}
	copy(r.address[:], rawUnix(good))
	swap := map[int]func(bool){0: r.swapAddress, 1: r.swapLink, 2: r.swapDescriptor, 3: r.swapFolder, 4: r.write}[mode]
	if swap == nil || !r.prepare(mode) {
		return 2
	}
	end := time.Now().Add(time.Duration(a.number(3)) * time.Second)
	// Ends with the process.
	go func() {
		for flip := false; ; flip = !flip {
			swap(flip)
		}
	}()
	tries, connected := 0, 0
	// On a busy machine the link may be bad, or not there, for a thousand tries.
	more := func() bool {
		isMissed := connected == 0 && mode < 4
		return tries < a.number(4) || a.number(4) > 0 && isMissed
	}
	for ; time.Now().Before(end) || more(); tries++ {
		if r.once() {
			connected++
		}
	}
	fmt.Printf("mode %d: %d tries, %d connected\n", mode, tries, connected)
	return 0
}

type race struct {
	good, bad string
	address   [110]byte
	link      string // swapped in place of the address, for modes 1 and 3
	socket    atomic.Int32
}

func (r *race) prepare(mode int) bool {
	switch mode {
	case 1:
		r.link = r.good + ".link"
	case 3:
		r.link = r.good + ".dir/s"
		os.Mkdir(r.good+".inside", 0o755)
		os.Remove(r.good + ".inside/s")
		if os.Link(r.good, r.good+".inside/s") != nil {
			return false
		}
	}
	if r.link != "" {
		copy(r.address[:], rawUnix(r.link))
	}
	if mode == 4 {
		copy(r.address[:], rawUnix(r.bad))
	}
	return true
}

func (r *race) once() bool {
	s, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return false
	}
	defer unix.Close(s)
	r.socket.Store(int32(s))
	if _, err := call(unix.SYS_CONNECT, uintptr(s), uintptr(unsafe.Pointer(&r.address)), uintptr(len(r.address))); err != nil {
		return false
	}
	unix.Write(s, []byte("RACEHIT\n"))
	return true
}

func (r *race) swapAddress(bad bool) {
	path := r.good
	if bad {
		path = r.bad
	}
	copy(r.address[2:108], append([]byte(path), 0))
}

func (r *race) replaceLink(link, to string) {
	os.Remove(link + ".new")
	if os.Symlink(to, link+".new") == nil {
		os.Rename(link+".new", link)
	}
}

func (r *race) swapLink(bad bool) {
	if bad {
		r.replaceLink(r.link, r.bad)
	} else {
		r.replaceLink(r.link, r.good)
	}
}

func (r *race) swapFolder(bad bool) {
	if bad {
		r.replaceLink(r.good+".dir", r.bad[:max(0, len(r.bad)-len("/ipc.sock"))])
	} else {
		r.replaceLink(r.good+".dir", r.good+".inside")
	}
}

// write sends to whatever the socket is connected to by now.
func (r *race) write(bool) {
	if to := r.socket.Load(); to > 2 {
		unix.Sendto(int(to), []byte("RACEHIT\n"), unix.MSG_NOSIGNAL, nil)
	}
}

// swapDescriptor puts another socket in the place of the one that connects.
func (r *race) swapDescriptor(bool) {
	s, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return
	}
	if to := r.socket.Load(); to > 2 {
		unix.Dup3(s, int(to), 0)
	}
	unix.Close(s)
}
