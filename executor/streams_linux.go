package executor

import (
	"errors"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// streams are the descriptors of one command, both sides.
type streams struct {
	child  [3]*os.File // the command's; closed as soon as it has its own
	opened []*os.File  // what closeChild has to close
	input  *os.File    // the other side of its standard input; nil if there is none
	ctty   *os.File    // the master of its controlling terminal; nil in Off
	out    []*stream

	lastInput atomic.Int64 // when data was given last, in nanoseconds since the epoch; 0 = never
	atEnd     atomic.Bool  // the input was ended
}

// stream is one output of a command and the goroutine that reads it.
type stream struct {
	file *os.File
	to   io.Writer
	last *atomic.Int64 // when something came last, in nanoseconds since the epoch
}

// openStreams connects c as its Terminal says. On error nothing stays open.
func openStreams(c Command) (s *streams, err error) {
	s = &streams{}
	defer func() {
		if err != nil {
			s.closeChild()
			s.close()
		}
	}()
	if c.Terminal == Off {
		return s, s.openPipes(c)
	}
	return s, s.openTerminals(c)
}

func (s *streams) openTerminals(c Command) error {
	master, slave, err := openTerminal(c.Rows, c.Cols)
	if err != nil {
		return err
	}
	s.opened = append(s.opened, slave)
	s.child = [3]*os.File{slave, slave, slave}
	s.ctty, s.input = master, master
	s.read(master, c.Stdout)
	if c.Terminal == Split {
		master, slave, err := openTerminal(c.Rows, c.Cols)
		if err != nil {
			return err
		}
		s.opened = append(s.opened, slave)
		s.child[2] = slave
		s.read(master, c.Stderr)
	}
	if !c.Stdin {
		_, err = s.input.Write(endOfInput())
	}
	return err
}

func (s *streams) openPipes(c Command) error {
	for i, to := range []io.Writer{c.Stdout, c.Stderr} {
		r, w, err := os.Pipe()
		if err != nil {
			return err
		}
		s.opened = append(s.opened, w)
		s.child[i+1] = w
		s.read(r, to)
	}
	if !c.Stdin {
		null, err := os.Open(os.DevNull)
		if err != nil {
			return err
		}
		s.opened = append(s.opened, null)
		s.child[0] = null
		return nil
	}
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	s.opened = append(s.opened, r)
	s.child[0], s.input = r, w
	return nil
}

func (s *streams) read(f *os.File, to io.Writer) {
	s.out = append(s.out, &stream{file: f, to: orDiscard(to), last: new(atomic.Int64)})
}

// attach sends the output to the writers of c. Nothing reads yet.
func (s *streams) attach(c Command) {
	for i, to := range []io.Writer{c.Stdout, c.Stderr}[:len(s.out)] {
		s.out[i].to = orDiscard(to)
	}
}

func orDiscard(w io.Writer) io.Writer {
	if w == nil {
		return io.Discard
	}
	return w
}

// closeChild closes the command's side, once it has it or cannot have it.
func (s *streams) closeChild() {
	for _, f := range s.opened {
		f.Close()
	}
	s.opened = nil
}

// close closes our side.
func (s *streams) close() {
	for _, o := range s.out {
		o.file.Close()
	}
	if s.input != nil && s.input != s.ctty {
		s.input.Close()
	}
}

// idle is how long no stream brought anything.
func (s *streams) idle(now time.Time) time.Duration {
	idle := time.Duration(1<<63 - 1)
	for _, o := range s.out {
		idle = min(idle, now.Sub(time.Unix(0, o.last.Load())))
	}
	return idle
}

// lastOutput is when a stream brought something last, or the start.
func (s *streams) lastOutput() time.Time {
	last := int64(0)
	for _, o := range s.out {
		last = max(last, o.last.Load())
	}
	return time.Unix(0, last)
}

// pending reports whether something has come that is not read yet. A poll of a
// terminal waits for the kernel's work that brings what was written. A busy machine
// puts that work off, and a process that waits for room meanwhile looks as if it had
// nothing more to say.
func (s *streams) pending() (yes bool) {
	for _, o := range s.out {
		_ = withFD(o.file, func(fd int) error { // one that is closed is read to its end
			come, err := readable(fd)
			yes = yes || come
			return err
		})
	}
	return yes
}

// given is when the command was given data last.
func (s *streams) given() time.Time { return time.Unix(0, s.lastInput.Load()) }

// bufferSize: a terminal gives about 4 KiB a read whatever is asked, a pipe is
// as fast with 32 KiB as with more.
const bufferSize = 32 << 10

// drainLimit bounds what is read after the end of a command. Neither a terminal
// nor a pipe can hold more than that, so nothing of the command's own is lost,
// and a leftover that writes without end is not listened to without end.
const drainLimit = 1 << 20

// copy reads the stream to its end, or until interrupt; then it takes what is
// already there and returns. The end of a terminal is believed when it is met
// twice in a row; see rest.
func (s *stream) copy(buffers *sync.Pool) {
	buf := buffers.Get().(*[bufferSize]byte)
	defer buffers.Put(buf)
	for ends := 0; ends < 2; {
		n, err := s.file.Read(buf[:])
		if n > 0 {
			s.take(buf[:n])
		}
		switch {
		case err == nil || errors.Is(err, syscall.EINTR):
			ends = 0
		case errors.Is(err, os.ErrDeadlineExceeded):
			s.rest(buf[:])
			return
		default:
			ends++ // io.EOF of a pipe, EIO of a terminal that nobody holds any more
		}
	}
}

func (s *stream) take(b []byte) {
	s.last.Store(time.Now().UnixNano())
	_, _ = s.to.Write(b) // a writer that fails must not stop the command
}

// interrupt makes copy finish with what is there.
func (s *stream) interrupt() { _ = s.file.SetReadDeadline(time.Unix(1, 0)) }

// rest reads without waiting until nothing is there. The deadline has to be
// cleared first: it refuses even bytes that have already come.
//
// A read of a terminal first waits for the kernel's work that brings what was
// written. Work that met a full buffer, which has been read meanwhile, has put
// itself off once more, and only the next read waits for that. So what has come is
// all read when two reads in a row find nothing.
func (s *stream) rest(buf []byte) {
	_ = s.file.SetReadDeadline(time.Time{})
	raw, err := s.file.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Read(func(fd uintptr) bool {
		for total, empty := 0, 0; total < drainLimit && empty < 2; {
			n, err := syscall.Read(int(fd), buf)
			switch {
			case errors.Is(err, syscall.EINTR):
			case err != nil || n <= 0:
				empty++
			default:
				empty = 0
				total += n
				s.take(buf[:n])
			}
		}
		return true // never wait
	})
}
