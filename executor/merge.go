package executor

import (
	"bytes"
	"time"
)

const (
	// tailWait is how long an unfinished line waits for its end once the other stream
	// is quiet; tailWaitMax bounds its wait while the other stream prints.
	tailWait    = 20 * time.Millisecond
	tailWaitMax = 250 * time.Millisecond

	// reportWait is how late a write is reported at most, on a busy machine.
	reportWait = 50 * time.Millisecond

	// mergeBuffer bounds what is held of each stream, and so the length of a line.
	mergeBuffer = 64 << 10

	// mergeRuns bounds the runs that are held: writes may be reported whose bytes were
	// discarded before they were read.
	mergeRuns = 2 * mergeBuffer
)

// merger joins two streams into one view, cut at line ends, in the order in which
// they were written. It passes on every byte of a stream, in the stream's order.
//
// The order comes from the kernel's reports of writes. A report names a stream and no
// length, and equal neighbours are reported once: a run. The bytes of a write are
// there before its report. So when bytes were read and there is no further report,
// each run has bytes, and of each process at most the last write is not reported yet.
//
// Each line, and the unfinished one at the end, is an item. Where the items can be
// given to the runs in one way only, that is their order; else the merger picks one
// and sets unsure. It needs a clock, whatever its origin, and one goroutine.
type merger struct {
	emit    func(stream int, p []byte)
	watched bool // writes are reported; else the order of added is the order
	unsure  bool // the order of some lines is a guess

	in    [2]inflow
	runs  []int         // not resolved; no two neighbours are equal
	news  bool          // something came since the last settle
	now   time.Duration // of the last settle
	stray bool          // something was written that is reported under no stream
	full  bool          // at the last settle; reported bytes may not have been added yet

	last     int           // stream of the last run that was resolved
	resolved time.Duration // when
	loose    bool          // it had more than the one item that its report stands for

	held  bool          // the first of runs may have an item that belongs behind all of them
	began time.Duration // when the first of runs was held
	since time.Duration // when it was first held without news
}

// inflow is what a merger holds of a stream.
type inflow struct {
	mem   []byte        // of mergeBuffer bytes
	buf   []byte        // in mem; at its beginning after settle
	old   int           // leading bytes of an unfinished line that has been resolved
	since time.Duration // when that line began
	heard time.Duration // when bytes came last
	owed  bool          // bytes were resolved of which no write is reported
	late  time.Duration // from then on it never will be
}

func newMerger(watched bool, emit func(stream int, p []byte)) *merger {
	m := &merger{emit: emit, watched: watched, last: -1}
	for s := range m.in {
		m.in[s].mem = make([]byte, mergeBuffer)
		m.in[s].buf = m.in[s].mem[:0]
	}
	return m
}

// wrote reports a write to stream, after all that were reported before.
func (m *merger) wrote(stream int) {
	m.news = true
	switch n := len(m.runs); {
	case n > 0 && m.runs[n-1] == stream:
	case n == mergeRuns:
		m.unsure = true
	default:
		m.runs = append(m.runs, stream)
	}
}

// strayed reports a write to stream 0 under another name, at an unknown position.
func (m *merger) strayed() { m.news, m.stray = true, true }

// space is where the next bytes of stream go, for added. After settle it is not empty.
func (m *merger) space(stream int) []byte {
	buf := m.in[stream].buf
	return buf[len(buf):cap(buf)]
}

// added takes n bytes that are in the space of stream.
func (m *merger) added(stream, n int, now time.Duration) {
	in := &m.in[stream]
	in.buf, in.heard = in.buf[:len(in.buf)+n], now
	m.news = true
	if !m.watched {
		m.wrote(stream)
	}
}

// settle emits what is certain and what has waited long enough. The bytes of all
// reported writes must have been added, unless they did not fit: then nothing is known
// of the order of what came of both streams, until the rest has been added too.
func (m *merger) settle(now time.Duration) {
	m.now = now
	full := len(m.in[0].buf) == mergeBuffer || len(m.in[1].buf) == mergeBuffer
	if (full || m.full) && m.mixed() {
		m.unsure = true
	}
	m.full = full
	m.resolve(full || m.held && now >= m.waitsUntil())
	for s := range m.in {
		in := &m.in[s]
		if in.owed && now >= in.late {
			in.owed, m.unsure = false, true
		}
		due, waits := m.tailDue(s)
		if waits && now >= due || len(in.buf) == mergeBuffer {
			m.flush(s)
		}
		if cap(in.buf) < mergeBuffer {
			in.buf = in.mem[:copy(in.mem, in.buf)]
		}
	}
}

// mixed reports whether something came of both streams since they were resolved.
func (m *merger) mixed() bool {
	return len(m.runs) > 1 || m.items(0) > 0 && m.items(1) > 0
}

// close emits all that is left, once every write is reported and all bytes are added.
func (m *merger) close(now time.Duration) {
	m.now = now
	m.resolve(true)
	first := 0
	if m.in[1].since < m.in[0].since {
		first = 1
	}
	m.flush(first)
	m.flush(1 - first)
	m.unsure = m.unsure || m.in[0].owed || m.in[1].owed
}

// due is when settle has something to do though nothing comes.
func (m *merger) due() (at time.Duration, waits bool) {
	first := func(t time.Duration, yes bool) {
		if yes && (!waits || t < at) {
			at, waits = t, true
		}
	}
	first(m.waitsUntil(), m.held)
	for s := range m.in {
		first(m.in[s].late, m.in[s].owed)
		first(m.tailDue(s))
	}
	return at, waits
}

// waitsUntil is how long what is held waits for a report.
func (m *merger) waitsUntil() time.Duration {
	if m.news {
		return m.began + tailWaitMax
	}
	return min(m.since+reportWait, m.began+tailWaitMax)
}

// tailDue is when the unfinished line of a stream has waited long enough.
func (m *merger) tailDue(s int) (at time.Duration, waits bool) {
	in := &m.in[s]
	if m.held || len(in.buf) == 0 {
		return 0, false
	}
	return min(max(in.since, m.in[1-s].heard)+tailWait, in.since+tailWaitMax), true
}

// resolve gives the runs their items and emits these. Unless it is final, an item
// whose write may not be reported yet is held, with all that follows.
func (m *merger) resolve(final bool) {
	if m.held && !m.news && !final {
		return
	}
	m.noteStray()
	if !m.held {
		m.began = m.now
	}
	m.news, m.held = false, false
	var shares [2]share
	var reported [2]bool
	for s := range shares {
		shares[s] = m.share(s, final)
		reported[s] = shares[s].runs > 0
		m.held = m.held || shares[s].wait
	}
	m.since = m.now
	for len(m.runs) > 0 && !m.held {
		s := m.runs[0]
		m.take(s, shares[s].next())
		if shares[s].hold && shares[s].runs == 0 {
			m.loose, m.held = true, true
			return
		}
		m.runs = m.runs[1:]
	}
	if m.held {
		return
	}
	m.runs = nil
	for s := range m.in {
		in := &m.in[s]
		if !reported[s] {
			m.takeUnreported(s)
		} else {
			in.owed = false
		}
		if in.old == 0 {
			in.since = m.now
		}
		in.old = len(in.buf)
	}
}

// noteStray gives up the order where bytes of a stray write may be among those that are
// new or not reported. A terminal of somebody else was written to where there are none.
func (m *merger) noteStray() {
	in := &m.in[0]
	if m.stray && (len(in.buf) > in.old || in.owed) {
		m.unsure = true
	}
	m.stray = false
}

// takeUnreported resolves bytes of which no write is reported, behind all that is:
// their write is the latest, or is not reported at all.
func (m *merger) takeUnreported(s int) {
	in := &m.in[s]
	if len(in.buf) > in.old {
		in.owed, in.late = true, m.now+reportWait
		m.take(s, m.items(s))
	}
}

// items counts the lines of a stream, and an unfinished one that is not resolved.
func (m *merger) items(s int) int {
	in := &m.in[s]
	n := bytes.Count(in.buf[in.old:], []byte{'\n'})
	if len(in.buf) > in.old && in.buf[len(in.buf)-1] != '\n' {
		n++
	}
	return n
}

// share is how many items each run of a stream gets: one, but the first ones may get
// none, and the first that does some more.
type share struct {
	runs, none, more int
	hold             bool // one more item is there, held
	wait             bool // it cannot be told yet
}

// next is the number of items of the next run.
func (h *share) next() int {
	h.runs--
	if h.none > 0 {
		h.none--
		return 0
	}
	n := 1 + h.more
	h.more = 0
	return n
}

// share decides about the items of a stream. Where the first run goes on from what was
// resolved last, it may be the late report of that, and have no items. Where the last
// run is the other stream's, the last item may be of a write that is not reported yet.
func (m *merger) share(s int, final bool) share {
	var h share
	for _, r := range m.runs {
		if r == s {
			h.runs++
		}
	}
	if h.runs == 0 {
		return h
	}
	n, need := m.items(s), h.runs
	goesOn := m.runs[0] == s && m.last == s && m.now < m.resolved+reportWait
	if goesOn {
		need--
	}
	if m.watched && !final && m.runs[len(m.runs)-1] != s && n > need {
		h.wait = h.runs > 1 || goesOn && n == 1
		h.hold = !h.wait
		n--
	}
	if h.runs > 1 && !h.wait && (n > h.runs || n > need && m.loose) {
		m.unsure = true
	}
	h.none, h.more = max(0, h.runs-n), max(0, n-h.runs)
	return h
}

// take resolves one run with n items, and emits the lines among them.
func (m *merger) take(s, n int) {
	in := &m.in[s]
	end, from := 0, in.old // what was unfinished has no line end
	for range n {
		line := bytes.IndexByte(in.buf[from:], '\n')
		if line < 0 {
			break // the unfinished one stays
		}
		end = from + line + 1
		from = end
	}
	goesOn := m.last == s && m.loose && m.now < m.resolved+reportWait
	m.loose = n > 1 || n > 0 && goesOn || in.owed
	m.last, m.resolved = s, m.now
	m.pass(s, end)
}

// flush emits an unfinished line.
func (m *merger) flush(s int) {
	if len(m.in[s].buf) > 0 {
		m.last, m.loose, m.resolved = s, false, m.now
		m.pass(s, len(m.in[s].buf))
	}
}

// pass emits the first n bytes of a stream.
func (m *merger) pass(s, n int) {
	if n == 0 {
		return
	}
	in := &m.in[s]
	m.emit(s, in.buf[:n])
	in.buf = in.buf[n:]
	in.old = max(0, in.old-n)
}
