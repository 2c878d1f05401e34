package codex

import (
	"encoding/json"
	"fmt"
	"slices"
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
	maxChunks  = 8 << 10  // kept of a process, and unwritten
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
	updates  chan struct{} // capacity 1: the call may have changed
	decided  chan struct{} // closed when the command runs or never will

	call      atomic.Pointer[dispatch.Call] // nil until it is submitted
	announced atomic.Bool                   // the client knows that it runs

	mu         sync.Mutex
	watcher    *dispatch.Watcher // nil while no connection is attached
	seen       int               // events handled
	running    bool
	capture    *spool.Capture  // nil until it runs
	final      *dispatch.Final // the end, numbered after all output
	refused    *rpcError       // why it did not run
	offsets    [2]int64        // bytes of each stream in chunks
	chunks     []chunk
	lastSeq    uint64 // of a chunk or event
	exitSeq    uint64 // 0: none yet. The close is the next number
	exitCode   int
	sentSeq    uint64 // the last number written
	endWritten time.Time
	changed    chan struct{}   // closed and replaced when there is more
	writes     map[string]bool // ids that were accepted
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

func (p *process) wake() { notify(p.updates) }

func (p *process) pump() {
	for {
		select {
		case <-p.updates:
		case <-p.session.dropped:
			p.abandon()
			return
		}
		done := p.handleEvents()
		p.session.wakeWriter()
		if done {
			return
		}
	}
}

// handleEvents handles new events and output, and reports whether the call has ended.
func (p *process) handleEvents() (done bool) {
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
	p.assignNumbers()
	if began || p.final != nil {
		p.closeDecided()
	}
	return p.final != nil
}

// abandon refuses a process that has not started.
func (p *process) abandon() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.running && p.refused == nil {
		p.refused = refuse("the session has ended")
	}
	p.closeDecided()
}

// closeDecided closes decided once. The caller holds mu.
func (p *process) closeDecided() {
	select {
	case <-p.decided:
	default:
		close(p.decided)
	}
}

// assignNumbers numbers new output, then the end. It pauses while a client that does not read leaves too much unwritten.
// The caller holds mu.
func (p *process) assignNumbers() {
	before := p.lastSeq
	defer func() {
		if p.lastSeq > before {
			close(p.changed)
			p.changed = make(chan struct{})
		}
	}()
	numbered := p.capture == nil || p.numberOutput()
	if !numbered || p.final == nil || p.exitSeq > 0 {
		return
	}
	p.numberEnd(*p.final)
}

// numberOutput reports whether it numbered all output. The caller holds mu.
func (p *process) numberOutput() (all bool) {
	for p.chunksAfter(p.sentSeq) < maxChunks {
		s, n := p.capture.Turn(p.offsets)
		if n = min(n, chunkBytes); n == 0 {
			all = true
			break
		}
		p.lastSeq++
		p.chunks = append(p.chunks, chunk{seq: p.lastSeq, stream: s, from: p.offsets[s], size: n})
		p.offsets[s] += n
	}
	if len(p.chunks) > 2*maxChunks {
		p.chunks = slices.Clone(p.chunks[len(p.chunks)-maxChunks:])
	}
	return all
}

// numberEnd numbers the exit and the close, or sets refused for a process that did not run. The caller holds mu.
func (p *process) numberEnd(f dispatch.Final) {
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
		p.lastSeq++
		p.chunks = append(p.chunks, chunk{seq: p.lastSeq, stream: tools.Stderr, text: text})
	}
	p.exitCode = 1
	if f.Return.ExitCode != nil {
		p.exitCode = *f.Return.ExitCode
	}
	p.exitSeq = p.lastSeq + 1
	p.lastSeq += 2
}

func epilogue(r message.ToolReturn) string {
	var lines []string
	if r.Note != "" {
		lines = append(lines, r.Note)
	}
	if r.ErrorType != nil {
		first, _, _ := strings.Cut(strings.TrimPrefix(r.Result, r.Note+"\n"), "\n")
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

func (p *process) streamName(s tools.Stream) string {
	if p.terminal {
		return "pty"
	}
	return s.String()
}

// readChunk reads a chunk. The caller holds mu.
func (p *process) readChunk(k chunk) outputChunk {
	out := outputChunk{Seq: k.seq, Stream: p.streamName(k.stream), Chunk: []byte(k.text)}
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

// nextFrame returns the next frame to write, or nil.
func (p *process) nextFrame() []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.announced.Load() {
		return nil
	}
	if p.sentSeq == p.lastSeq && p.exitSeq == 0 {
		p.assignNumbers() // after a pause
	}
	if p.sentSeq == p.lastSeq {
		return nil
	}
	n := notification{}
	switch seq := p.sentSeq + 1; {
	case p.exitSeq > 0 && seq == p.exitSeq:
		n = notification{"process/exited", object{
			"processId": p.id, "seq": seq, "exitCode": p.exitCode,
			"sandboxDenied": false, // on true Codex asks to run the command without a sandbox
		}}
	case p.exitSeq > 0 && seq > p.exitSeq:
		n = notification{"process/closed", object{"processId": p.id, "seq": seq}}
		p.endWritten = time.Now()
		p.session.srv.opt.Dispatch.Delivered(p.call.Load())
	default:
		n = notification{"process/output", outputParams{p.id, p.readChunk(p.chunks[len(p.chunks)-p.chunksAfter(p.sentSeq)])}}
	}
	p.sentSeq++
	frame, err := json.Marshal(n)
	if err != nil { // cannot happen: the types of wire.go marshal
		return nil
	}
	return frame
}

// chunksAfter counts the chunks after seq. The caller holds mu.
func (p *process) chunksAfter(seq uint64) int {
	n := len(p.chunks)
	if n == 0 || p.chunks[n-1].seq <= seq {
		return 0
	}
	return int(min(uint64(n), p.chunks[n-1].seq-seq))
}

// endWrittenAt returns when the end was written; zero until then, and for a process that did not run.
func (p *process) endWrittenAt() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.endWritten
}

func (p *process) ended() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.final != nil || p.refused != nil
}

// hasOutput reports whether output after seq or the end exists. more is closed when more arrives.
func (p *process) hasOutput(seq uint64) (ready bool, more <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.chunksAfter(seq) > 0 || p.exitSeq > 0, p.changed
}

// pendingRead answers process/read with at most limit bytes but at least one chunk, read from the record when the answer
// is written.
type pendingRead struct {
	process *process
	seq     uint64
	limit   int64
}

func (o pendingRead) MarshalJSON() ([]byte, error) {
	return json.Marshal(o.process.read(o.seq, o.limit))
}

func (p *process) read(seq uint64, limit int64) readResult {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := readResult{Chunks: []outputChunk{}, NextSeq: p.lastSeq + 1}
	for _, k := range p.chunks[len(p.chunks)-p.chunksAfter(seq):] {
		size := max(k.size, int64(len(k.text)))
		if limit -= size; limit < 0 && len(r.Chunks) > 0 {
			r.NextSeq = k.seq
			break
		}
		r.Chunks = append(r.Chunks, p.readChunk(k))
	}
	if p.exitSeq > 0 && r.NextSeq > p.exitSeq {
		r.Exited, r.ExitCode, r.Closed = true, new(p.exitCode), true
	}
	return r
}
