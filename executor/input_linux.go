package executor

import "time"

// feed carries out the input of the command. The deadline that listen sets with done ends a blocked write.
func (r *running) feed(done <-chan struct{}) {
	tty := &ttyWriter{master: r.streams.ctty}
	feed(r.Input, done, r.control, func(in Input) bool { return r.write(in, tty, done) })
}

// control carries out a signal or a window size, and reports whether in was one. It has taken effect when control
// returns.
func (r *running) control(in Input) bool {
	switch {
	case in.Rows > 0 && in.Cols > 0:
		if r.streams.ctty == nil {
			return true
		}
		for _, o := range r.streams.out {
			_ = setSize(o.file, in.Rows, in.Cols)
		}
		return true
	case in.Signal != "":
		if sig := signalOf(in.Signal); sig != 0 {
			send := r.process.Signal
			if in.ToShell {
				send = r.process.SignalShell
			}
			send(sig)
		}
		return true
	}
	return false
}

// write writes data or EOF, and reports whether all of it was written. After EOF it writes nothing.
func (r *running) write(in Input, t *ttyWriter, done <-chan struct{}) bool {
	s := r.streams
	if r.ended() {
		return false
	}
	defer func() { s.lastInput.Store(time.Now().UnixNano()) }()
	if in.EOF {
		s.atEnd.Store(true)
	}
	var err error
	switch {
	case in.EOF && s.ctty != nil:
		_, err = s.ctty.Write(endOfInput())
	case in.EOF:
		err = s.input.Close()
	case s.ctty != nil:
		return t.write(in.Data, done)
	default:
		_, err = s.input.Write(in.Data)
	}
	return err == nil
}
