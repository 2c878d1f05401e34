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
	chunkBytes = 32 << 10 // maximum size of a chunk
	readBytes  = 4 << 20  // maximum size of an answer to process/read
	maxChunks  = 8 << 10  // per process: kept chunks, and unwritten ones
)

// chunk is a range of recorded output, or text added by toold.
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
	input    bool          // the command can receive input
	updates  chan struct{} // capacity 1: the call may have news
	decided  chan struct{} // closed when the command runs or never will
	decide   func()        // closes decided; it may be called again

	call      atomic.Pointer[dispatch.Call] // nil before the call is submitted
	announced atomic.Bool                   // process/start was answered

	mu         sync.Mutex
	watcher    *dispatch.Watcher // nil while there is no connection
	seen       int               // number of handled events
	running    bool
	capture    *spool.Capture  // nil before the command runs
	final      *dispatch.Final // set at the end; numbered after all output
	refused    *rpcError       // why the command did not run
	offsets    [2]int64        // bytes of each stream that are in chunks
	chunks     []chunk
	lastSeq    uint64 // of the latest chunk or event
	exitSeq    uint64 // of the exit, which the close follows; 0: not yet numbered
	exitCode   int
	sentSeq    uint64 // of the last written frame
	endWritten time.Time
	changed    chan struct{}   // closed and replaced when there is news
	writes     map[string]bool // ids of accepted writes
}

func (p *process) watch() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.watcher == nil && p.call.Load() != nil {
		p.watcher = p.call.Load().Watch(p.wake)
	}
}

// unwatch detaches from the call, which starts its linger time.
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

// handleEvents handles new events and output. It reports whether the call has ended.
func (p *process) handleEvents() (done bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	// Events are read before the output, so that the output is complete once the return is among them.
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
		p.decide()
	}
	return p.final != nil
}

// abandon marks a process that has not started as refused.
func (p *process) abandon() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.running && p.refused == nil {
		p.refused = refuse("the session has ended")
	}
	p.decide()
}

// assignNumbers numbers new output and finally the end. It pauses while too many chunks are unwritten because the
// client does not read. The caller holds mu.
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

// numberOutput numbers output, and reports whether that was all of it. The caller holds mu.
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

// numberEnd numbers the exit and the close, or sets refused if the command did not run. The caller holds mu.
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

// readChunk returns a chunk with its bytes. The caller holds mu.
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

func (p *process) nextFrame() []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.announced.Load() {
		return nil
	}
	if p.sentSeq == p.lastSeq && p.exitSeq == 0 {
		p.assignNumbers() // continue after a pause
	}
	if p.sentSeq == p.lastSeq {
		return nil
	}
	n := notification{}
	switch seq := p.sentSeq + 1; {
	case p.exitSeq > 0 && seq == p.exitSeq:
		n = notification{"process/exited", object{
			"processId": p.id, "seq": seq, "exitCode": p.exitCode,
			"sandboxDenied": false, // true would make Codex request the command without a sandbox
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
	if err != nil { // cannot happen with the types of wire.go
		return nil
	}
	return frame
}

// chunksAfter returns the number of chunks after seq. The caller holds mu.
func (p *process) chunksAfter(seq uint64) int {
	n := len(p.chunks)
	if n == 0 || p.chunks[n-1].seq <= seq {
		return 0
	}
	return int(min(uint64(n), p.chunks[n-1].seq-seq))
}

// endWrittenAt returns when the end was written, or zero.
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

// hasOutput reports whether there is output after seq, or the end. more is closed when there is news.
func (p *process) hasOutput(seq uint64) (ready bool, more <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.chunksAfter(seq) > 0 || p.exitSeq > 0, p.changed
}

// pendingRead is the answer to process/read, with at most limit bytes but at least one chunk. Output is read when the
// answer is encoded.
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
