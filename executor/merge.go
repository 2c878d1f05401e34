package executor

import (
	"bytes"
	"time"
)

const (
	// An unfinished line is kept for tailWait after the other stream is silent, and for tailWaitMax while that
	// prints.
	tailWait    = 20 * time.Millisecond
	tailWaitMax = 250 * time.Millisecond

	// reportWait is the longest delay of a report of a write on a busy machine.
	reportWait = 50 * time.Millisecond

	// mergeBuffer limits the buffered bytes of each stream, and so the length of a line. The buffer begins with
	// firstBuffer bytes.
	mergeBuffer = 64 << 10
	firstBuffer = 2 << 10

	// mergeRuns limits the pending runs, since the bytes of a reported write may have been discarded.
	mergeRuns = 2 * mergeBuffer
)

// merger joins two streams into one, cut at line ends, in the order of their writes. It is not safe for concurrent
// use. Its clock may have any origin.
//
// The order comes from the kernel's reports of writes, which name a stream but no length. Adjacent reports of one
// stream form a run. The bytes of a write are readable before its report. So once all reports are read, each run has
// bytes, and at most the last write of each process is unreported.
//
// Each line is an item, and so is an unfinished one at the end. If the items can be assigned to the runs in several
// ways, the merger chooses one and sets unsure.
type merger struct {
	emit    func(stream int, p []byte)
	watched bool // otherwise the order of calls of added counts
	unsure  bool // the order of some lines is a guess

	in    [2]inflow
	runs  []int         // unresolved; neighbours differ
	news  bool          // since the previous settle
	now   time.Duration // of the latest settle
	stray bool          // a write belongs to no stream
	full  bool          // at the latest settle: reported bytes may not have been added

	last     int           // stream of the last resolved run; -1 = none
	resolved time.Duration // when it was resolved
	multi    bool          // it had more than one item per report

	holding bool          // the first run may have an item that belongs after all runs
	began   time.Duration // when holding began
	since   time.Duration // when it began to wait without new reports or bytes
}

type inflow struct {
	mem   []byte
	buf   []byte        // part of mem; at its start after settle
	old   int           // resolved bytes of an unfinished line
	since time.Duration // when that line began
	heard time.Duration // when bytes last arrived
	owed  bool          // bytes were resolved before their report
	late  time.Duration // when owed makes the order unsure
}

func newMerger(watched bool, emit func(stream int, p []byte)) *merger {
	m := &merger{emit: emit, watched: watched, last: -1}
	for s := range m.in {
		m.in[s].heard = -reportWait
	}
	return m
}

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

// strayed records a write to stream 0 under another name, at an unknown position.
func (m *merger) strayed() { m.news, m.stray = true, true }

// space returns the buffer for the next bytes of stream. It is not empty after settle.
func (m *merger) space(stream int) []byte {
	in := &m.in[stream]
	if n := len(in.buf); n == len(in.mem) && n < mergeBuffer {
		in.mem = make([]byte, max(firstBuffer, min(4*n, mergeBuffer)))
		in.buf = in.mem[:copy(in.mem, in.buf)]
	}
	return in.buf[len(in.buf):cap(in.buf)]
}

func (m *merger) added(stream, n int, now time.Duration) {
	in := &m.in[stream]
	in.buf, in.heard = in.buf[:len(in.buf)+n], now
	m.news = true
	if !m.watched {
		m.wrote(stream)
	}
}

// settle emits what is certain or has waited long enough. The bytes of all reported writes must have been added
// unless they did not fit. Until the rest is added, the order of bytes on both streams is then unknown.
func (m *merger) settle(now time.Duration) {
	m.now = now
	full := len(m.in[0].buf) == mergeBuffer || len(m.in[1].buf) == mergeBuffer
	if (full || m.full) && m.mixed() {
		m.unsure = true
	}
	m.full = full
	m.resolve(full || m.holding && now >= m.waitsUntil())
	for s := range m.in {
		in := &m.in[s]
		if in.owed && now >= in.late {
			in.owed, m.unsure = false, true
		}
		due, waits := m.tailDue(s)
		if waits && now >= due || len(in.buf) == mergeBuffer {
			m.flush(s)
		}
		if cap(in.buf) < len(in.mem) {
			in.buf = in.mem[:copy(in.mem, in.buf)]
		}
	}
}

func (m *merger) mixed() bool {
	return len(m.runs) > 1 || m.items(0) > 0 && m.items(1) > 0
}

// close emits everything that is left. All writes must have been reported, and all bytes added.
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

// due returns when to call settle even if nothing arrives.
func (m *merger) due() (at time.Duration, waits bool) {
	first := func(t time.Duration, yes bool) {
		if yes && (!waits || t < at) {
			at, waits = t, true
		}
	}
	first(m.waitsUntil(), m.holding)
	for s := range m.in {
		first(m.in[s].late, m.in[s].owed)
		first(m.tailDue(s))
	}
	return at, waits
}

func (m *merger) waitsUntil() time.Duration {
	if m.news {
		return m.began + tailWaitMax
	}
	return min(m.since+reportWait, m.began+tailWaitMax)
}

func (m *merger) tailDue(s int) (at time.Duration, waits bool) {
	in := &m.in[s]
	if m.holding || len(in.buf) == 0 {
		return 0, false
	}
	return min(max(in.since, m.in[1-s].heard)+tailWait, in.since+tailWaitMax), true
}

// resolve assigns items to the runs and emits them. Unless final, it keeps what may precede an unreported write.
func (m *merger) resolve(final bool) {
	if m.holding && !m.news && !final {
		return
	}
	m.noteStray()
	if !m.holding {
		m.began = m.now
	}
	m.news, m.holding = false, false
	var shares [2]share
	var reported [2]bool
	for s := range shares {
		shares[s] = m.share(s, final)
		reported[s] = shares[s].runs > 0
		m.holding = m.holding || shares[s].wait
	}
	m.since = m.now
	for len(m.runs) > 0 && !m.holding {
		s := m.runs[0]
		m.take(s, shares[s].next())
		if shares[s].hold && shares[s].runs == 0 {
			m.multi, m.holding = true, true
			return
		}
		m.runs = m.runs[1:]
	}
	if m.holding {
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

// noteStray sets unsure if bytes of a stray write may be among the others, or may have been, if its report is late.
// Otherwise it went to an unrelated terminal.
func (m *merger) noteStray() {
	in := &m.in[0]
	mine := len(in.buf) > in.old || in.owed || m.now < in.heard+reportWait
	if m.stray && mine {
		m.unsure = true
	}
	m.stray = false
}

// takeUnreported resolves bytes without a report last: their write is the latest, or will never be reported.
func (m *merger) takeUnreported(s int) {
	in := &m.in[s]
	if len(in.buf) > in.old {
		in.owed, in.late = true, m.now+reportWait
		m.take(s, m.items(s))
	}
}

func (m *merger) items(s int) int {
	in := &m.in[s]
	n := bytes.Count(in.buf[in.old:], []byte{'\n'})
	if len(in.buf) > in.old && in.buf[len(in.buf)-1] != '\n' {
		n++
	}
	return n
}

// share is the distribution of a stream's items over its runs: one each, except that the first may get none, and the
// first that gets any may get more.
type share struct {
	runs, none, more int
	hold             bool // keep one more item
	wait             bool // not yet decided
}

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

// share distributes the items of stream s. The first run may have no items, if it continues the last resolved run and
// so may be its late report. If the last run is the other stream's, the last item may belong to an unreported write.
func (m *merger) share(s int, final bool) share {
	h := share{runs: m.runsOf(s)}
	if h.runs == 0 {
		return h
	}
	n, need := m.items(s), h.runs
	goesOn := m.runs[0] == s && m.goesOn(s)
	if goesOn {
		need--
	}
	mayLack := m.watched && !final && m.runs[len(m.runs)-1] != s
	if mayLack && n > need {
		h.wait = h.runs > 1 || goesOn && n == 1
		h.hold = !h.wait
		n--
	}
	ambiguous := n > h.runs || n > need && m.multi
	if ambiguous && h.runs > 1 && !h.wait {
		m.unsure = true
	}
	h.none, h.more = max(0, h.runs-n), max(0, n-h.runs)
	return h
}

func (m *merger) runsOf(s int) (n int) {
	for _, r := range m.runs {
		if r == s {
			n++
		}
	}
	return n
}

// goesOn reports whether a run of stream s may continue the last resolved one.
func (m *merger) goesOn(s int) bool { return m.last == s && m.now < m.resolved+reportWait }

// take resolves a run with n items, and emits the lines in them.
func (m *merger) take(s, n int) {
	in := &m.in[s]
	end, from := 0, in.old
	for range n {
		line := bytes.IndexByte(in.buf[from:], '\n')
		if line < 0 {
			break
		}
		end = from + line + 1
		from = end
	}
	goesOn := n > 0 && m.multi && m.goesOn(s)
	m.multi = n > 1 || goesOn || in.owed
	m.last, m.resolved = s, m.now
	m.pass(s, end)
}

func (m *merger) flush(s int) {
	if len(m.in[s].buf) > 0 {
		m.last, m.multi, m.resolved = s, false, m.now
		m.pass(s, len(m.in[s].buf))
	}
}

func (m *merger) pass(s, n int) {
	if n == 0 {
		return
	}
	in := &m.in[s]
	m.emit(s, in.buf[:n])
	in.buf = in.buf[n:]
	in.old = max(0, in.old-n)
}
