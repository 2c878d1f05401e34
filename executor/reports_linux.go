package executor

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sys/unix"
)

// mostReports limits the inotify instances of a Pool. The default limit per user is 128.
const mostReports = 32

// idleReports is how many unused instances a Pool keeps open, since closing one takes the kernel milliseconds.
const idleReports = 2

// reports is an inotify instance that reports the writes to the streams of a command in their order. nil reports
// none.
type reports struct {
	fd  int
	wds [2]int // watches of the streams
	tty int    // watch of /dev/tty, another name of the terminal
	buf [4096]byte
}

func newReports() *reports {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil
	}
	return &reports{fd: fd, wds: [2]int{-1, -1}, tty: -1}
}

func (r *reports) watch(streams []*stream) error {
	for s, o := range streams {
		err := withFD(o.file, func(fd int) (err error) {
			name := o.name
			if name == "" { // both ends of a pipe are the same file
				name = fmt.Sprintf("/proc/self/fd/%d", fd)
			}
			r.wds[s], err = unix.InotifyAddWatch(r.fd, name, unix.IN_MODIFY)
			return err
		})
		if err != nil {
			return err
		}
	}
	if streams[0].name != "" {
		r.tty, _ = unix.InotifyAddWatch(r.fd, "/dev/tty", unix.IN_MODIFY) // -1 after an error
	}
	return nil
}

func (r *reports) unwatch() {
	for _, wd := range []int{r.wds[0], r.wds[1], r.tty} {
		if wd >= 0 {
			_, _ = unix.InotifyRmWatch(r.fd, uint32(wd)) // an error means that the file and its watch no longer exist
		}
	}
	r.wds, r.tty = [2]int{-1, -1}, -1
	for n := 1; n > 0; {
		n, _ = unix.Read(r.fd, r.buf[:])
	}
}

func (r *reports) read(m *merger) (some bool) {
	rounds := 0
	for more := r != nil; more && rounds < mostIdle; rounds++ {
		n, err := unix.Read(r.fd, r.buf[:])
		more = errors.Is(err, unix.EINTR) || n > len(r.buf)-unix.SizeofInotifyEvent
		for at := 0; at+unix.SizeofInotifyEvent <= n; {
			wd, mask := int(int32(binary.NativeEndian.Uint32(r.buf[at:]))), binary.NativeEndian.Uint32(r.buf[at+4:])
			some = r.report(m, wd, mask) || some
			at += unix.SizeofInotifyEvent + int(binary.NativeEndian.Uint32(r.buf[at+12:]))
		}
	}
	return some
}

func (r *reports) report(m *merger, wd int, mask uint32) bool {
	switch {
	case mask&unix.IN_Q_OVERFLOW != 0:
		m.unsure = true
	case mask&unix.IN_MODIFY == 0:
		return false
	case wd == r.tty:
		m.strayed()
	case wd == r.wds[0]:
		m.wrote(0)
	case wd == r.wds[1]:
		m.wrote(1)
	}
	return true
}

func (r *reports) close() { unix.Close(r.fd) }

// reportPool shares inotify instances among commands.
type reportPool struct {
	mu      sync.Mutex
	idle    []*reports
	out     int
	filled  bool // the instances to keep were opened, all at once: the number of descriptors must not grow with use
	closed  bool
	closing sync.WaitGroup // closes instances beyond idleReports
}

// borrow returns an instance, or nil if too many are in use or none can be opened.
func (p *reportPool) borrow() *reports {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.out >= mostReports {
		return nil
	}
	for !p.filled && len(p.idle) < idleReports {
		r := newReports()
		if r == nil {
			break
		}
		p.idle = append(p.idle, r)
	}
	p.filled = true
	var r *reports
	if n := len(p.idle); n > 0 {
		r = p.idle[n-1]
		p.idle = p.idle[:n-1]
	} else if r = newReports(); r == nil {
		return nil
	}
	p.out++
	return r
}

func (p *reportPool) put(r *reports) {
	r.unwatch()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.out--
	switch {
	case p.closed:
		r.close()
	case len(p.idle) < idleReports:
		p.idle = append(p.idle, r)
	default:
		p.closing.Go(r.close) // Ends when the kernel has closed it.
	}
}

// close closes the unused instances, and makes put close the others.
func (p *reportPool) close() {
	p.mu.Lock()
	idle := p.idle
	p.idle, p.closed = nil, true
	p.mu.Unlock()
	for _, r := range idle {
		r.close()
	}
	p.closing.Wait()
}
