package codex

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toold/toold/internal/dispatch"
	"github.com/toold/toold/message"
	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/spool"
)

const (
	chunkBytes = 32 << 10 // of one chunk
	readBytes  = 4 << 20  // of one answer to process/read
	keptChunks = 8 << 10  // of a process; also the most unwritten ones
)

// chunk is the position of output in the record of the call, or text of toold itself.
type chunk struct {
	seq    uint64
	stream tools.Stream
	from   int64
	size   int64
	text   string
}

type process struct {
	session  *session
	id       string
	terminal bool          // the command has a terminal
	input    bool          // it receives input
	news     chan struct{} // capacity 1: the call may have changed
	decided  chan struct{} // closed when the command runs or never will

	call      atomic.Pointer[dispatch.Call] // nil until it is submitted
	announced atomic.Bool                   // the client knows that it runs

	mu      sync.Mutex
	watcher *dispatch.Watcher // nil while no connection is attached
	seen    int               // events handled
	running bool
	capture *spool.Capture  // nil until it runs
	final   *dispatch.Final // the end, numbered after all output
	refused *rpcError       // why it did not run
	offsets [2]int64        // bytes of each stream in chunks
	chunks  []chunk
	last    uint64 // of a chunk or event
	exit    uint64 // 0: none yet. The close is the next number
	code    int
	sent    uint64 // the last number written
	written time.Time
	changed chan struct{}   // closed and replaced when there is more
	writes  map[string]bool // ids that were accepted
}

func (p *process) watch() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.watcher == nil && p.call.Load() != nil {
		p.watcher = p.call.Load().Watch(p.wake)
	}
}

// unwatch starts the call's linger time.
func (p *process) unwatch() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.watcher != nil {
		p.watcher.Detach()
		p.watcher = nil
	}
}

func (p *process) wake() { notify(p.news) }

func (p *process) pump() {
	for {
		select {
		case <-p.news:
		case <-p.session.gone:
			p.abandon()
			return
		}
		over := p.advance()
		p.session.poke()
		if over {
			return
		}
	}
}

// advance handles what is new and reports whether that was the last.
func (p *process) advance() (over bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	// The events are read first: the output is complete by the time the return is read.
	events := p.call.Load().Events(p.seen)
	p.seen += len(events)
	began := false
	for _, e := range events {
		switch e := e.(type) {
		case message.ToolStarted:
			began = true
		case dispatch.Final:
			p.final = &e
		}
	}
	if p.running = p.running || began; p.running {
		p.capture = p.call.Load().Capture()
	}
	p.number()
	if began || p.final != nil {
		p.decide()
	}
	return p.final != nil
}

// abandon cancels a pending decision.
func (p *process) abandon() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.running && p.refused == nil {
		p.refused = refuse("the session has ended")
	}
	p.decide()
}

// decide closes decided once. The caller holds mu.
func (p *process) decide() {
	select {
	case <-p.decided:
	default:
		close(p.decided)
	}
}

// number numbers new output, then the end. It pauses while too much is unwritten, for a client that does not read. The
// caller holds mu.
func (p *process) number() {
	before := p.last
	defer func() {
		if p.last > before {
			close(p.changed)
			p.changed = make(chan struct{})
		}
	}()
	numbered := p.capture == nil || p.numberOutput()
	if !numbered || p.final == nil || p.exit > 0 {
		return
	}
	p.conclude(*p.final)
}

// numberOutput reports whether it numbered all output. The caller holds mu.
func (p *process) numberOutput() (all bool) {
	for p.after(p.sent) < keptChunks {
		s, n := p.capture.Turn(p.offsets)
		if n = min(n, chunkBytes); n == 0 {
			all = true
			break
		}
		p.last++
		p.chunks = append(p.chunks, chunk{seq: p.last, stream: s, from: p.offsets[s], size: n})
		p.offsets[s] += n
	}
	if len(p.chunks) > 2*keptChunks {
		p.chunks = append([]chunk(nil), p.chunks[len(p.chunks)-keptChunks:]...)
	}
	return all
}

// conclude numbers the end. The caller holds mu.
func (p *process) conclude(f dispatch.Final) {
	switch {
	case f.Return == nil:
		p.refused = refuse("%s", f.Err.Message)
		return
	case f.Return.Replayed:
		p.running = false
		p.refused = refuse("this tool call ran before, and none runs twice; nothing ran now. What it returned then: %.2000s", f.Return.Result)
		return
	case !p.running:
		p.refused = refuse("%s", strings.TrimPrefix(f.Return.Result, "Error: "))
		return
	}
	if text := epilogue(*f.Return); text != "" {
		p.last++
		p.chunks = append(p.chunks, chunk{seq: p.last, stream: tools.Stderr, text: text})
	}
	p.code = 1
	if f.Return.ExitCode != nil {
		p.code = *f.Return.ExitCode
	}
	p.exit = p.last + 1
	p.last += 2
}

func epilogue(r message.ToolReturn) string {
	var lines []string
	if r.ErrorType != nil {
		first, _, _ := strings.Cut(r.Result, "\n")
		lines = append(lines, first)
	}
	for _, d := range r.Denials {
		line := fmt.Sprintf("the sandbox refused: %s %s", d.Op, d.Target)
		if d.Hint != "" {
			line += ": " + d.Hint
		}
		lines = append(lines, line)
	}
	if len(lines) == 0 {
		return ""
	}
	return "\n[toold] " + strings.Join(lines, "\n[toold] ") + "\n"
}

func (p *process) name(s tools.Stream) string {
	if p.terminal {
		return "pty"
	}
	return s.String()
}

// output reads a chunk. The caller holds mu.
func (p *process) output(k chunk) outputChunk {
	out := outputChunk{Seq: k.seq, Stream: p.name(k.stream), Chunk: []byte(k.text)}
	if k.text != "" {
		return out
	}
	data, from, _ := p.capture.ReadAt(k.stream, k.from, int(k.size))
	if lost := min(from-k.from, k.size); lost > 0 {
		notice := fmt.Sprintf("\n[toold] %d bytes of output are not kept\n", lost)
		data = append([]byte(notice), data[:min(int64(len(data)), k.size-lost)]...)
	}
	out.Chunk = data
	return out
}

// next returns the next frame to write, or nil.
func (p *process) next() []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.announced.Load() {
		return nil
	}
	if p.sent == p.last && p.exit == 0 {
		p.number() // after a pause
	}
	if p.sent == p.last {
		return nil
	}
	n := notification{}
	switch seq := p.sent + 1; {
	case p.exit > 0 && seq == p.exit:
		n = notification{"process/exited", object{
			"processId": p.id, "seq": seq, "exitCode": p.code,
			"sandboxDenied": false, // on true Codex asks to run the command without a sandbox
		}}
	case p.exit > 0 && seq > p.exit:
		n = notification{"process/closed", object{"processId": p.id, "seq": seq}}
		p.written = time.Now()
		p.session.srv.opt.Dispatch.Delivered(p.call.Load())
	default:
		n = notification{"process/output", outputParams{p.id, p.output(p.chunks[len(p.chunks)-p.after(p.sent)])}}
	}
	p.sent++
	frame, err := json.Marshal(n)
	if err != nil { // cannot happen: the types of wire.go marshal
		return nil
	}
	return frame
}

// after counts the chunks after seq. The caller holds mu.
func (p *process) after(seq uint64) int {
	n := len(p.chunks)
	if n == 0 || p.chunks[n-1].seq <= seq {
		return 0
	}
	return int(min(uint64(n), p.chunks[n-1].seq-seq))
}

// writtenAt returns when the end was written; zero until then, and for a process that did not run.
func (p *process) writtenAt() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.written
}

func (p *process) ended() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.final != nil || p.refused != nil
}

// has reports whether there is something after seq. more is closed when there is more.
func (p *process) has(seq uint64) (something bool, more <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.after(seq) > 0 || p.exit > 0, p.changed
}

// outputAfter answers process/read with at most most bytes but at least one chunk. It is read from the record when it
// is written.
type outputAfter struct {
	process *process
	seq     uint64
	most    int64
}

func (o outputAfter) MarshalJSON() ([]byte, error) {
	return json.Marshal(o.process.read(o.seq, o.most))
}

func (p *process) read(seq uint64, most int64) readResult {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := readResult{Chunks: []outputChunk{}, NextSeq: p.last + 1}
	for _, k := range p.chunks[len(p.chunks)-p.after(seq):] {
		size := max(k.size, int64(len(k.text)))
		if most -= size; most < 0 && len(r.Chunks) > 0 {
			r.NextSeq = k.seq
			break
		}
		r.Chunks = append(r.Chunks, p.output(k))
	}
	if p.exit > 0 && r.NextSeq > p.exit {
		code := p.code
		r.Exited, r.ExitCode, r.Closed = true, &code, true
	}
	return r
}
