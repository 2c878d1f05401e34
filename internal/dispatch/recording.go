package dispatch

import (
	"github.com/toold/toold/internal/journal"
	"github.com/toold/toold/message"
	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/spool"
)

// Recording is the output of one call: of a running one in its capture, of an ended
// one in its files.
type Recording interface {
	// ReadAt reads at most most bytes from an offset, or from the next later one
	// that is kept; eof tells that nothing more is kept, and nothing will come.
	ReadAt(s tools.Stream, offset int64, most int) (p []byte, from int64, eof bool)
	// Total is how many bytes the stream has had so far, kept or not.
	Total(s tools.Stream) int64
}

// Recording returns the output of the call so far; nil before it runs.
func (c *Call) Recording() Recording {
	if capture := c.Capture(); capture != nil {
		return running{capture}
	}
	return nil
}

// OpenRecording opens the output of a call that has its return.
func OpenRecording(rec journal.Record) (Recording, *message.Error) {
	if rec.SpoolDir == "" {
		return nil, message.NotFound.Errorf("this call started no command, so it left no output; its answer is in its return")
	}
	e := &past{}
	if ret, err := message.Record(rec.Result).Return(); err == nil {
		e.totals = [2]int64{ret.StdoutBytes, ret.StderrBytes}
	}
	spool, err := spool.Open(rec.SpoolDir)
	if err != nil && (e.totals != [2]int64{} || rec.ErrorType == string(message.UnknownAfterCrash)) {
		return nil, message.NotFound.Errorf("the output of this call is not kept any more (limits.spool_keep, limits.state_bytes); its return holds the head and the tail")
	}
	e.spool = spool
	return e, nil
}

type running struct{ *spool.Capture }

// Total counts a stream.
func (r running) Total(s tools.Stream) int64 {
	stdout, stderr, _ := r.Totals()
	return [...]int64{stdout, stderr, stdout + stderr}[s]
}

type past struct {
	spool  *spool.Spool // nil when the call printed nothing
	totals [2]int64     // as the return counts them; zero where it does not
}

// ReadAt reads what is in the files.
func (e *past) ReadAt(s tools.Stream, offset int64, most int) (p []byte, from int64, eof bool) {
	if e.spool == nil {
		return nil, offset, true
	}
	p, _ = e.spool.ReadAt(s, offset, most)
	return p, offset, offset+int64(len(p)) >= e.spool.Size(s)
}

// Total is what the return says, or what the files hold if that is more: the
// return of a call that was cut off by a crash counts nothing.
func (e *past) Total(s tools.Stream) int64 {
	counted := [...]int64{e.totals[0], e.totals[1], e.totals[0] + e.totals[1]}[s]
	if e.spool == nil {
		return counted
	}
	return max(counted, e.spool.Size(s))
}
