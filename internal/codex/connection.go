package codex

import (
	"encoding/json"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
)

// A Connection is one client connection. One goroutine calls Accept and finally Close, another calls Run.
type Connection struct {
	srv          *Server
	client       string
	write        func(frame []byte) error
	keep         func(bytes int64) bool // see Connect
	closed       chan struct{}          // closed by Close
	closeOnce    sync.Once
	wake         chan struct{} // capacity 1: there may be frames to write
	requestSlots chan struct{} // one element per unanswered request that may block
	answerSlots  chan struct{} // one element per other unwritten answer; full only if the client does not read
	contentSlots chan struct{} // one element per unwritten answer to a method in large
	shared       chan struct{} // the same for all connections of the client
	handlers     sync.WaitGroup

	session  *session                // nil before initialize; used by the reader
	attached atomic.Pointer[session] // the same session, for the writer

	mu       sync.Mutex
	left     bool            // nothing begins any more, because leave waits for what runs
	queue    []response      // at most one per request
	handles  map[string]file // open file handles
	kept     int64           // bytes of the unanswered requests that may block
	contents int             // elements of this connection in shared
}

// Connect returns a Connection for the client with this token name. Only Run calls write, which sends a text frame. keep
// receives the number of bytes of unanswered requests that the connection is to keep, and returns false if that is too
// many.
func (s *Server) Connect(client string, write func(frame []byte) error, keep func(bytes int64) bool) *Connection {
	return &Connection{
		srv: s, client: client, write: write, keep: keep, shared: s.contentsOf(client), closed: make(chan struct{}), handles: make(map[string]file),
		wake: make(chan struct{}, 1), requestSlots: make(chan struct{}, maxRequests),
		answerSlots: make(chan struct{}, maxRequests), contentSlots: make(chan struct{}, maxLarge),
	}
}

// Close ends the connection and drops unanswered requests, whose commands Codex considers failed. It may be repeated.
func (c *Connection) Close() { c.closeOnce.Do(func() { close(c.closed) }) }

func (c *Connection) wakeWriter() { notify(c.wake) }

func notify(wake chan<- struct{}) {
	select {
	case wake <- struct{}{}:
	default:
	}
}

// Run writes until the connection ends, a write fails, or everything is written after ending was closed. It then waits
// for the connection's goroutines.
func (c *Connection) Run(ending <-chan struct{}) {
	defer c.leave()
	last := false
	for {
		busy, err := c.writePending()
		switch {
		case err != nil:
			return
		case busy:
			continue
		case last && c.drained():
			return
		}
		select {
		case <-c.wake:
		case <-ending:
			last, ending = true, nil
		case <-c.closed:
			return
		}
	}
}

func (c *Connection) leave() {
	c.Close()
	c.mu.Lock()
	c.left = true
	c.mu.Unlock()
	c.handlers.Wait()
	c.mu.Lock()
	c.queue, c.kept = nil, 0
	c.keep(0)
	for ; c.contents > 0; c.contents-- {
		<-c.shared
	}
	c.mu.Unlock()
	if s := c.attached.Load(); s != nil {
		s.detach(c)
	}
}

// writePending writes the queued answers and one frame per process. busy means that there may be more.
func (c *Connection) writePending() (busy bool, err error) {
	// Before the queue is taken, so that the answer to process/start precedes the process's output.
	processes := slices.DeleteFunc(c.attached.Load().processesOf(c), func(p *process) bool { return !p.announced.Load() })
	c.mu.Lock()
	queue := c.queue
	c.queue = nil
	c.mu.Unlock()
	for i, answer := range queue {
		queue[i] = response{} // for the garbage collector
		frame, err := json.Marshal(answer)
		if err != nil {
			answer.Result, answer.Error = nil, &rpcError{codeInternal, "the answer cannot be written: " + err.Error()}
			frame, _ = json.Marshal(answer) // cannot fail: the id was valid JSON
		}
		if err := c.write(frame); err != nil {
			return false, err
		}
		if answer.large {
			c.releaseContent()
		}
		c.charge(-answer.size)
		<-answer.slots
		busy = true
	}
	for _, p := range processes {
		frame := p.nextFrame()
		if frame == nil {
			continue
		}
		if err := c.write(frame); err != nil {
			return false, err
		}
		busy = true
	}
	return busy, nil
}

// drained reports whether every request is answered and the end of every process is written.
func (c *Connection) drained() bool {
	if len(c.requestSlots)+len(c.answerSlots) > 0 {
		return false
	}
	return !slices.ContainsFunc(c.attached.Load().processesOf(c), func(p *process) bool { return p.endWrittenAt().IsZero() })
}

// reply queues the answer to a request that has a slot. It must be called once per request.
func (c *Connection) reply(r request, result any, e *rpcError) {
	answer := response{ID: r.ID, Result: result, slots: r.slots, large: r.large, size: r.size}
	if e != nil {
		answer.Result, answer.Error = nil, e
	}
	c.mu.Lock()
	c.queue = append(c.queue, answer)
	c.mu.Unlock()
	c.wakeWriter()
}

// method executes a request. Unless it returns an error, the result is not nil.
type method func(c *Connection, params json.RawMessage) (any, *rpcError)

// withParams returns a method that decodes its params and calls do.
func withParams[P any](do func(*Connection, P) (any, *rpcError)) method {
	return func(c *Connection, params json.RawMessage) (any, *rpcError) {
		var p P
		if e := decode(params, &p); e != nil {
			return nil, e
		}
		return do(c, p)
	}
}

func withFile[P interface{ file() (file, *rpcError) }](do func(*Connection, file, P) (any, *rpcError)) method {
	return withParams(func(c *Connection, p P) (any, *rpcError) {
		f, e := p.file()
		if e != nil {
			return nil, e
		}
		return do(c, f, p)
	})
}

// immediate lists the methods that never block. Accept executes them in order.
var immediate = map[string]method{
	"environment/info":  (*Connection).info,
	"process/write":     withParams((*Connection).writeInput),
	"process/signal":    withParams((*Connection).signal),
	"process/terminate": withParams((*Connection).terminate),
}

// blocking lists the methods that may block. Each request has its own goroutine.
var blocking = map[string]method{
	"process/read":       withParams((*Connection).readOutput),
	"fs/getMetadata":     withFile((*Connection).getMetadata),
	"fs/readFile":        withFile((*Connection).readFile),
	"fs/readDirectory":   withFile((*Connection).readDirectory),
	"fs/canonicalize":    withFile((*Connection).canonicalize),
	"fs/walk":            withFile((*Connection).walk),
	"fs/open":            withFile((*Connection).open),
	"fs/readBlock":       withParams((*Connection).readBlock),
	"fs/close":           withParams((*Connection).closeFile),
	"fs/writeFile":       withFile((*Connection).writeFile),
	"fs/createDirectory": withFile((*Connection).createDirectory),
	"fs/remove":          withFile((*Connection).remove),
	"fs/copy":            withParams((*Connection).copy),
}

// large lists the blocking methods that return the content of a file or a list of files.
var large = map[string]bool{"fs/readFile": true, "fs/readBlock": true, "fs/readDirectory": true, "fs/walk": true}

// Accept handles one frame. It blocks only if the client does not read its answers, until the connection is closed.
func (c *Connection) Accept(frame []byte) {
	var r request
	err := json.Unmarshal(frame, &r)
	notifies := len(r.ID) == 0 || isEmpty(r.ID)
	if err == nil && notifies && r.Method == "initialized" {
		return
	}
	full := ""
	if err == nil && !notifies {
		full = c.takeRequestSlot(&r, int64(len(frame)))
	}
	if r.slots == nil {
		select {
		case c.answerSlots <- struct{}{}:
			r.slots = c.answerSlots
		case <-c.closed:
			return
		}
	}
	switch {
	case err != nil || r.Method == "" || len(r.ID) > maxRequestID:
		r.ID = json.RawMessage("-1")
		c.reply(r, nil, refuse("the frame is not a request: send one JSON object with method, params and an id of at most %d bytes", maxRequestID))
	case notifies:
		r.ID = json.RawMessage("-1")
		c.reply(r, nil, refuse("the notification %q is not known; nothing was done", r.Method))
	case full != "":
		c.reply(r, nil, refuse("%s; nothing was done. Send it again once some are answered", full))
	default:
		c.handle(r)
	}
}

func (c *Connection) handle(r request) {
	switch do := immediate[r.Method]; {
	case r.Method == "initialize":
		c.answer(r, withParams((*Connection).initialize))
	case c.session == nil:
		c.reply(r, nil, refuse("send initialize first; nothing was done"))
	case do != nil:
		c.answer(r, do)
	case r.Method == "process/start":
		// Ends when the command runs or never will, or when the connection ends; leave waits.
		c.begin(func() {
			defer c.recovered(r)
			c.start(r)
		})
	case blocking[r.Method] != nil:
		// Ends when the request is answered or the connection ends; leave waits.
		c.begin(func() {
			if r.large = large[r.Method]; r.large && !c.takeContentSlot() {
				return // the connection has ended
			}
			c.answer(r, blocking[r.Method])
		})
	default:
		c.reply(r, nil, &rpcError{codeMethodNotFound, "toold does not serve the method " + r.Method + "; nothing was done"})
	}
}

// begin runs a handler, unless the connection has ended.
func (c *Connection) begin(handler func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.left {
		c.handlers.Go(handler)
	}
}

func (c *Connection) answer(r request, do method) {
	defer c.recovered(r)
	result, e := do(c, r.Params)
	c.reply(r, result, e)
}

func (c *Connection) recovered(r request) {
	if p := recover(); p != nil {
		c.reply(r, nil, &rpcError{codeInternal, c.srv.opt.Fault(p)})
	}
}

func (c *Connection) initialize(p initializeParams) (any, *rpcError) {
	if c.session != nil {
		return nil, refuse("this connection is initialized already; nothing was done")
	}
	s, e := c.srv.openSession(c.client, p.ResumeSessionID)
	if e == nil {
		e = s.attach(c)
	}
	if e != nil {
		return nil, e
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left {
		s.detach(c)
		return nil, refuse("the connection has ended")
	}
	c.session = s
	c.attached.Store(s)
	return object{"sessionId": s.id, "environmentInfo": c.environment()}, nil
}

func (c *Connection) info(json.RawMessage) (any, *rpcError) { return c.environment(), nil }

// environment describes where processes run. There are no optional capabilities.
func (c *Connection) environment() object {
	o := c.srv.opt
	e := object{
		"shell": object{"name": "bash", "path": "/bin/bash"}, "cwd": uriOf(o.Workspace), "platformOs": runtime.GOOS,
		"temporaryDirectories": []string{}, "tempDir": uriOf("/tmp"), "capabilities": object{},
	}
	if o.Home != "" {
		e["userHomeDir"] = uriOf(o.Home)
	}
	return e
}
