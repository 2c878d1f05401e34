package executor

import (
	"bytes"
	"time"
)

const (
	// tailWait is how long an unfinished line is kept once the other stream is quiet,
	// tailWaitMax while it prints.
	tailWait    = 20 * time.Millisecond
	tailWaitMax = 250 * time.Millisecond

	// reportWait is the longest delay of a write report on a busy machine.
	reportWait = 50 * time.Millisecond

	// mergeBuffer bounds the buffered bytes of each stream, and so a line.
	mergeBuffer = 64 << 10

	// mergeRuns bounds the pending runs: the bytes of a reported write may have been discarded.
	mergeRuns = 2 * mergeBuffer
)

// merger joins two streams into one, cut at line ends, in the order of their writes. One
// goroutine uses it. Its clock may have any origin.
//
// The order comes from the kernel's write reports, which name a stream but no length; equal
// neighbours merge into a run. The bytes of a write are readable before its report: once no
// report is left, each run has bytes, and at most the last write of each process is unreported.
//
// Each line is an item, and so is the unfinished one at the end. If the items fit the runs in
// several ways, the merger picks one and sets unsure.
type merger struct {
	emit    func(stream int, p []byte)
	watched bool // otherwise calls of added define the order
	unsure  bool // the order of some lines is a guess

	in    [2]inflow
	runs  []int         // unresolved; no two neighbours are equal
	news  bool          // since the last settle
	now   time.Duration // of the last settle
	stray bool          // a write belongs to no stream
	full  bool          // at the last settle: reported bytes may not have been added

	last     int           // stream of the last resolved run; -1 = none
	resolved time.Duration // when it was resolved
	multi    bool          // it had more than one item per report

	holding bool          // the first of runs may have an item that belongs after all of them
	began   time.Duration // when holding began
	since   time.Duration // when it began to wait without news
}

type inflow struct {
	mem   []byte        // mergeBuffer bytes
	buf   []byte        // part of mem; at its start after settle
	old   int           // resolved bytes of an unfinished line
	since time.Duration // when that line began
	heard time.Duration // when bytes last arrived
	owed  bool          // bytes were resolved before their report
	late  time.Duration // when owed becomes unsure
}

func newMerger(watched bool, emit func(stream int, p []byte)) *merger {
	m := &merger{emit: emit, watched: watched, last: -1}
	for s := range m.in {
		m.in[s].mem = make([]byte, mergeBuffer)
		m.in[s].buf, m.in[s].heard = m.in[s].mem[:0], -reportWait
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

// space returns the buffer for the next bytes of stream; it is not empty after settle.
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

// settle emits what is certain or has waited long enough. The bytes of all reported writes must
// have been added, unless they did not fit: then the order of what came on both streams is
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

// resolve assigns items to the runs and emits them. Unless final, it keeps what may precede an
// unreported write.
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

// noteStray sets unsure if bytes of a stray write may be among the others, or were, if its report
// is late. Otherwise it went to an unrelated terminal.
func (m *merger) noteStray() {
	in := &m.in[0]
	mine := len(in.buf) > in.old || in.owed || m.now < in.heard+reportWait
	if m.stray && mine {
		m.unsure = true
	}
	m.stray = false
}

// takeUnreported resolves bytes without a report last: their write is the latest, or is never
// reported.
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

// share distributes the items of a stream over its runs: one each, but the first may get none,
// and the first that gets any more.
type share struct {
	runs, none, more int
	hold             bool // keep one more item back
	wait             bool // undecided yet
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

// share distributes the items of stream s. A first run that continues the last one may be its
// late report, without items. If the last run is the other stream's, the last item may belong to
// an unreported write.
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

// take resolves one run with n items, and emits the lines among them.
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
