package executor

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// drainLimit limits the bytes read from a stream after the end of a command. It exceeds any terminal or pipe buffer,
// so that no output is lost, but a remaining process that writes endlessly is cut off.
const drainLimit = 1 << 20

// terminalBuffer is the size of a terminal's buffer. A write that found it full arrives only with the second read
// that finds nothing.
const terminalBuffer = 4 << 10

// mostIdle limits the retries if the bytes of a report are missing: the write was discarded, or went to another
// terminal through /dev/tty.
const mostIdle = 100

type reader struct {
	streams []*stream
	poll    *os.File // epoll of streams and reports
	stopped atomic.Bool

	// Only run's goroutine uses these.
	begun  time.Time
	merger *merger
	ends   [2]int // successive EOFs
	read   [2]int // bytes since the interrupt

	reports *reports    // nil = writes are not reported
	awaited bool        // a report alone wakes wait
	lender  *reportPool // owner of reports
}

func newReader(streams []*stream) (*reader, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("cannot poll the output: %w", err)
	}
	if err := unix.SetNonblock(fd, true); err != nil { // os.File polls only nonblocking descriptors
		unix.Close(fd)
		return nil, fmt.Errorf("cannot poll the output: %w", err)
	}
	r := &reader{streams: streams, poll: os.NewFile(uintptr(fd), "epoll")}
	for _, s := range streams {
		if err := withFD(s.file, func(fd int) error { return r.control(unix.EPOLL_CTL_ADD, fd, unix.EPOLLIN) }); err != nil {
			r.poll.Close()
			return nil, fmt.Errorf("cannot poll the output: %w", err)
		}
	}
	return r, nil
}

func (r *reader) control(op, fd int, events uint32) error {
	return withFD(r.poll, func(poll int) error {
		return unix.EpollCtl(poll, op, fd, &unix.EpollEvent{Events: events, Fd: int32(fd)})
	})
}

// watch starts reporting writes, if an inotify instance is available.
func (r *reader) watch(lender *reportPool) {
	if len(r.streams) < 2 || r.reports != nil {
		return
	}
	reports := lender.borrow()
	if reports == nil {
		return
	}
	if reports.watch(r.streams) != nil || r.control(unix.EPOLL_CTL_ADD, reports.fd, 0) != nil {
		lender.put(reports)
		return
	}
	r.reports, r.lender = reports, lender
}

// close releases the resources. run must have ended, or not begun.
func (r *reader) close() {
	r.poll.Close()
	if r.reports != nil {
		r.lender.put(r.reports)
		r.reports = nil
	}
}

// exact reports, after run, whether the output is in the order of the writes.
func (r *reader) exact() bool {
	return len(r.streams) == 1 || r.reports != nil && !r.merger.unsure
}

// interrupt makes run finish with what has arrived.
func (r *reader) interrupt() {
	r.stopped.Store(true)
	_ = r.poll.SetReadDeadline(time.Unix(1, 0))
}

// run reads to EOF, or until interrupt.
func (r *reader) run() {
	r.begun = time.Now()
	r.merger = newMerger(r.reports != nil, r.pass)
	for !r.stopped.Load() && !r.ended() {
		r.turn(false)
		r.wait()
	}
	for r.turn(true) && r.read[0] < drainLimit && r.read[1] < drainLimit {
	}
	r.merger.close(time.Since(r.begun))
}

func (r *reader) ended() bool {
	for s := range r.streams {
		if r.ends[s] < 2 {
			return false
		}
	}
	return true
}

func (r *reader) wait() {
	r.awaitReports(r.merger.holding)
	deadline := time.Time{}
	if due, waits := r.merger.due(); waits {
		deadline = r.begun.Add(due)
	}
	_ = r.poll.SetReadDeadline(deadline)
	if r.stopped.Load() {
		return // the deadline of interrupt may be overwritten
	}
	raw, err := r.poll.SyscallConn()
	if err != nil {
		return
	}
	var events [3]unix.EpollEvent
	_ = raw.Read(func(fd uintptr) bool {
		n, err := unix.EpollWait(int(fd), events[:], 0)
		return n > 0 || err != nil && !errors.Is(err, unix.EINTR)
	})
}

// awaitReports sets whether a report alone wakes wait. A wake-up for each write would slow down a command that prints
// much.
func (r *reader) awaitReports(yes bool) {
	if r.reports == nil || yes == r.awaited {
		return
	}
	events := uint32(0)
	if yes {
		events = unix.EPOLLIN
	}
	if r.control(unix.EPOLL_CTL_MOD, r.reports.fd, events) == nil {
		r.awaited = yes
	}
}

// turn reads reports and bytes alternately until there are no reports, so that the bytes of each report have been
// read, and settles. It returns whether there were bytes.
func (r *reader) turn(last bool) (some bool) {
	r.reports.read(r.merger)
	for again, idle := true, 0; again; {
		read, full := 0, false
		for s := range r.streams {
			read += r.readAll(s, last)
			full = full || len(r.merger.space(s)) == 0
		}
		some = some || read > 0
		if read == 0 {
			idle++
		}
		if idle == mostIdle {
			r.merger.unsure = true
			break
		}
		again = r.reports.read(r.merger) && !full
	}
	r.merger.settle(time.Since(r.begun))
	if len(r.streams) == 1 {
		r.merger.flush(0) // an unfinished line only waits for the other stream
	}
	return some
}

// readAll reads a stream until it is empty or its space is full. The kernel worker of a terminal runs again if it
// found a full buffer. So after much output, and at the end, the stream is empty only if two reads find nothing, and
// EOF counts only if it is read twice.
func (r *reader) readAll(s int, last bool) (total int) {
	if r.ends[s] >= 2 {
		return 0
	}
	o := r.streams[s]
	_ = withFD(o.file, func(fd int) error {
		for empty := 0; empty < 2 && r.ends[s] < 2 && len(r.merger.space(s)) > 0; {
			n, err := syscall.Read(fd, r.merger.space(s))
			switch {
			case n > 0:
				empty, r.ends[s] = 0, 0
				total += n
				o.last.Store(time.Now().UnixNano())
				r.merger.added(s, n, time.Since(r.begun))
			case errors.Is(err, syscall.EINTR):
			case errors.Is(err, syscall.EAGAIN):
				empty++
				if total < terminalBuffer && !last {
					empty++
				}
			default:
				r.ends[s]++ // 0 for a pipe, EIO for a terminal that no process has open
			}
		}
		if r.ends[s] >= 2 {
			_ = r.control(unix.EPOLL_CTL_DEL, fd, 0)
		}
		return nil
	})
	if last {
		r.read[s] += total
	}
	return total
}

func (r *reader) pass(stream int, p []byte) {
	_, _ = r.streams[stream].to.Write(p) // an error of the writer must not stop the command
}
