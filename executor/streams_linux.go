package executor

import (
	"io"
	"os"
	"sync/atomic"
	"time"
)

// streams are the descriptors of a command, on both sides.
type streams struct {
	child  [3]*os.File // for the command; closed once it has been started
	opened []*os.File  // what closeChild closes
	input  *os.File    // nil = none
	ctty   *os.File    // master of the controlling terminal; nil = none
	out    []*stream
	reader *reader

	lastInput  atomic.Int64 // Unix nanoseconds; 0 = never
	atEnd      atomic.Bool  // EOF was written
	lastOutput atomic.Int64 // when output last arrived, in Unix nanoseconds
}

type stream struct {
	file *os.File
	name string // path of the slave; "" = a pipe
	to   io.Writer
	last *atomic.Int64 // streams.lastOutput
}

// openStreams opens the streams for c.Terminal. After an error, nothing is open.
func openStreams(c Command) (s *streams, err error) {
	s = &streams{}
	defer func() {
		if err != nil {
			s.closeChild()
			s.close()
		}
	}()
	if c.Terminal == Off {
		err = s.openPipes(c)
	} else {
		err = s.openTerminals(c)
	}
	if err == nil {
		s.reader, err = newReader(s.out)
	}
	return s, err
}

func (s *streams) openTerminals(c Command) error {
	master, slave, err := openTerminal(c.Rows, c.Cols)
	if err != nil {
		return err
	}
	s.opened = append(s.opened, slave)
	s.child = [3]*os.File{slave, slave, slave}
	s.ctty, s.input = master, master
	s.add(master, slave.Name(), c.Stdout)
	if c.Terminal == Split {
		master, slave, err := openTerminal(c.Rows, c.Cols)
		if err != nil {
			return err
		}
		s.opened = append(s.opened, slave)
		s.child[2] = slave
		s.add(master, slave.Name(), c.Stderr)
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
		s.add(r, "", to)
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

func (s *streams) add(f *os.File, name string, to io.Writer) {
	s.out = append(s.out, &stream{file: f, name: name, to: orDiscard(to), last: &s.lastOutput})
}

// attach sets the writers of c. It must be called before reading begins.
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

// closeChild closes the command's side after the command was started, or failed to.
func (s *streams) closeChild() {
	for _, f := range s.opened {
		f.Close()
	}
	s.opened = nil
}

func (s *streams) close() {
	if s.reader != nil {
		s.reader.close()
	}
	for _, o := range s.out {
		o.file.Close()
	}
	if s.input != nil && s.input != s.ctty {
		s.input.Close()
	}
}

func (s *streams) idle(now time.Time) time.Duration { return now.Sub(s.lastOutputAt()) }

func (s *streams) lastOutputAt() time.Time { return time.Unix(0, s.lastOutput.Load()) }

// pending reports whether there is unread output. poll(2) of a terminal waits for the kernel worker that delivers
// writes.
func (s *streams) pending() (yes bool) {
	for _, o := range s.out {
		_ = withFD(o.file, func(fd int) error { // a closed stream has no unread output
			come, err := readable(fd)
			yes = yes || come
			return err
		})
	}
	return yes
}
