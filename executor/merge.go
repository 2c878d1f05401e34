package executor

import (
	"bytes"
	"time"
)

const (
	// tailWait is how long an unfinished line is kept once the other stream is quiet; tailWaitMax
	// bounds that while the other stream prints.
	tailWait    = 20 * time.Millisecond
	tailWaitMax = 250 * time.Millisecond

	// reportWait is the longest delay of a write report on a busy machine.
	reportWait = 50 * time.Millisecond

	// mergeBuffer bounds the buffered bytes of each stream, and so the length of a line.
	mergeBuffer = 64 << 10

	// mergeRuns bounds the pending runs: bytes of reported writes may have been discarded before they
	// were read.
	mergeRuns = 2 * mergeBuffer
)

// merger joins two streams into one, cut at line ends, in the order of their writes. It passes on
// every byte of a stream, in order.
//
// The order comes from the kernel's reports of writes. A report names a stream but no length, and
// equal neighbours are reported once: a run. The bytes of a write are readable before its report.
// So when bytes were read and there is no further report, each run has bytes, and at most the last
// write of each process is unreported.
//
// Each line is an item, and so is the unfinished one at the end. If the items fit the runs in only
// one way, that is their order; otherwise the merger picks one and sets unsure. It needs a clock
// with any origin, and one goroutine.
type merger struct {
	emit    func(stream int, p []byte)
	watched bool // writes are reported; otherwise added calls define the order
	unsure  bool // the order of some lines is a guess

	in    [2]inflow
	runs  []int         // not resolved; no two neighbours are equal
	news  bool          // added or reported since the last settle
	now   time.Duration // time of the last settle
	stray bool          // a write was reported that belongs to no stream
	full  bool          // at the last settle; reported bytes may not have been added yet

	last     int           // stream of the last run that was resolved
	resolved time.Duration // when it was resolved
	multi    bool          // it had more than one item per report

	holding bool          // the first of runs may have an item that belongs after all of them
	began   time.Duration // when holding began
	since   time.Duration // when it began to wait without news
}

// inflow is the buffered input of one stream.
type inflow struct {
	mem   []byte        // mergeBuffer bytes
	buf   []byte        // part of mem; at its start after settle
	old   int           // resolved leading bytes of an unfinished line
	since time.Duration // when that line began
	heard time.Duration // when bytes last arrived
	owed  bool          // bytes were resolved before their write was reported
	late  time.Duration // after this time the report will not come
}

func newMerger(watched bool, emit func(stream int, p []byte)) *merger {
	m := &merger{emit: emit, watched: watched, last: -1}
	for s := range m.in {
		m.in[s].mem = make([]byte, mergeBuffer)
		m.in[s].buf = m.in[s].mem[:0]
	}
	return m
}

// wrote records a write to stream, after all reported before.
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

// space returns the buffer for the next bytes of stream, for added. It is not empty after settle.
func (m *merger) space(stream int) []byte {
	buf := m.in[stream].buf
	return buf[len(buf):cap(buf)]
}

// added takes n bytes from the space of stream.
func (m *merger) added(stream, n int, now time.Duration) {
	in := &m.in[stream]
	in.buf, in.heard = in.buf[:len(in.buf)+n], now
	m.news = true
	if !m.watched {
		m.wrote(stream)
	}
}

// settle emits what is certain and what has waited long enough. The bytes of all reported writes
// must have been added, unless they did not fit: then the order of what came on both streams is
// unknown until the rest has been added too.
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
		if cap(in.buf) < mergeBuffer {
			in.buf = in.mem[:copy(in.mem, in.buf)]
		}
	}
}

// mixed reports whether both streams have bytes that are not resolved.
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

// due returns when settle must be called even if nothing arrives.
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

// waitsUntil returns when the wait for a report ends.
func (m *merger) waitsUntil() time.Duration {
	if m.news {
		return m.began + tailWaitMax
	}
	return min(m.since+reportWait, m.began+tailWaitMax)
}

// tailDue returns when the unfinished line of a stream must be emitted.
func (m *merger) tailDue(s int) (at time.Duration, waits bool) {
	in := &m.in[s]
	if m.holding || len(in.buf) == 0 {
		return 0, false
	}
	return min(max(in.since, m.in[1-s].heard)+tailWait, in.since+tailWaitMax), true
}

// resolve assigns items to the runs and emits them. Unless final, it keeps an item whose write may
// not be reported yet, and all that follows.
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

// noteStray sets unsure if bytes of a stray write may be among the new or unreported ones.
// Otherwise the write went to an unrelated terminal.
func (m *merger) noteStray() {
	in := &m.in[0]
	if m.stray && (len(in.buf) > in.old || in.owed) {
		m.unsure = true
	}
	m.stray = false
}

// takeUnreported resolves bytes without a report after all others: their write is the latest, or is
// never reported.
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

// share is how many items each run of a stream gets: one, but the first ones may get none, and the
// first that gets any may get more.
type share struct {
	runs, none, more int
	hold             bool // keep one more item back
	wait             bool // undecided yet
}

// next returns the number of items of the next run.
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

// share distributes the items of a stream. A first run that continues what was resolved last may be
// its late report, and have no items. If the last run is the other stream's, the last item may
// belong to a write that is not reported yet.
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
	if h.runs > 1 && !h.wait && (n > h.runs || n > need && m.multi) {
		m.unsure = true
	}
	h.none, h.more = max(0, h.runs-n), max(0, n-h.runs)
	return h
}

// take resolves one run with n items, and emits the lines among them.
func (m *merger) take(s, n int) {
	in := &m.in[s]
	end, from := 0, in.old // the unfinished part has no line end
	for range n {
		line := bytes.IndexByte(in.buf[from:], '\n')
		if line < 0 {
			break // keep the unfinished one
		}
		end = from + line + 1
		from = end
	}
	goesOn := m.last == s && m.multi && m.now < m.resolved+reportWait
	m.multi = n > 1 || n > 0 && goesOn || in.owed
	m.last, m.resolved = s, m.now
	m.pass(s, end)
}

// flush emits an unfinished line.
func (m *merger) flush(s int) {
	if len(m.in[s].buf) > 0 {
		m.last, m.multi, m.resolved = s, false, m.now
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
