package codex

import (
	"encoding/json"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/toold/toold/tools/files"
)

// A Connection is one client. A reader calls Accept and finally Close, a writer calls Run.
type Connection struct {
	srv          *Server
	client       string
	write        func(frame []byte) error
	closed       chan struct{} // closed by Close
	closeOnce    sync.Once
	wake         chan struct{} // capacity 1: there may be something to write
	requestSlots chan struct{} // one per request that may block and whose answer is not written
	answerSlots  chan struct{} // one per other unwritten answer; only a client that does not read lacks one
	contentSlots chan struct{} // one per unwritten answer to a request that large lists
	handlers     sync.WaitGroup

	session  *session                // nil until initialize; set by the reader
	attached atomic.Pointer[session] // the same, for the writer

	mu      sync.Mutex
	queue   []response      // at most one for each request
	handles map[string]file // open ones
}

// Connect starts a connection of the client with this token name. Only Run calls write, which sends a text frame.
func (s *Server) Connect(client string, write func(frame []byte) error) *Connection {
	return &Connection{
		srv: s, client: client, write: write, closed: make(chan struct{}), handles: make(map[string]file),
		wake: make(chan struct{}, 1), requestSlots: make(chan struct{}, maxRequests),
		answerSlots: make(chan struct{}, maxRequests), contentSlots: make(chan struct{}, maxLarge),
	}
}

// Close ends the connection and drops waiting requests: Codex considers their commands failed. It may be called twice.
func (c *Connection) Close() { c.closeOnce.Do(func() { close(c.closed) }) }

// wakeWriter wakes the writer. It never blocks.
func (c *Connection) wakeWriter() { notify(c.wake) }

func notify(wake chan<- struct{}) {
	select {
	case wake <- struct{}{}:
	default:
	}
}

// Run writes until the connection ends, a write fails, or ending is ready and everything is written. It waits for the
// connection's goroutines.
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
	c.handlers.Wait()
	if s := c.attached.Load(); s != nil {
		s.detach(c)
	}
}

// writePending writes the queued answers and one frame of each process. busy reports whether there may be more.
func (c *Connection) writePending() (busy bool, err error) {
	// Before the queue: a process announced later has its answer in the next one.
	processes := slices.DeleteFunc(c.attached.Load().processesOf(c), func(p *process) bool { return !p.announced.Load() })
	c.mu.Lock()
	queue := c.queue
	c.queue = nil
	c.mu.Unlock()
	for i, answer := range queue {
		queue[i] = response{} // release it
		frame, err := json.Marshal(answer)
		if err != nil {
			answer.Result, answer.Error = nil, &rpcError{codeInternal, "the answer cannot be written: " + err.Error()}
			frame, _ = json.Marshal(answer) // the id was read as JSON
		}
		if err := c.write(frame); err != nil {
			return false, err
		}
		if answer.large {
			c.releaseContent()
		}
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
	for _, p := range c.attached.Load().processesOf(c) {
		if p.endWrittenAt().IsZero() {
			return false
		}
	}
	return true
}

// reply queues the answer to a request that has a slot. It must be called once for each.
func (c *Connection) reply(r request, result any, e *rpcError) {
	answer := response{ID: r.ID, Result: result, slots: r.slots, large: r.large}
	if e != nil {
		answer.Result, answer.Error = nil, e
	}
	c.mu.Lock()
	c.queue = append(c.queue, answer)
	c.mu.Unlock()
	c.wakeWriter()
}

// method carries out a request. Without an error, the result is not nil.
type method func(c *Connection, params json.RawMessage) (any, *rpcError)

// withParams returns a method that decodes its params for do.
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

// immediate lists the methods that never block. They are carried out in order.
var immediate = map[string]method{
	"environment/info":  (*Connection).info,
	"process/write":     withParams((*Connection).writeInput),
	"process/signal":    withParams((*Connection).signal),
	"process/terminate": withParams((*Connection).terminate),
}

// blocking lists those that may block. Each request has a goroutine.
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

// large lists the blocking methods that return content of a file, or a list of files.
var large = map[string]bool{"fs/readFile": true, "fs/readBlock": true, "fs/readDirectory": true, "fs/walk": true}

// Accept handles one frame. It blocks only while the client does not read its answers: then their writer notices
// the end of the connection.
func (c *Connection) Accept(frame []byte) {
	var r request
	err := json.Unmarshal(frame, &r)
	notifies := len(r.ID) == 0 || isEmpty(r.ID)
	if err == nil && notifies && r.Method == "initialized" {
		return
	}
	full := err == nil && !notifies && !c.takeRequestSlot(&r)
	if r.slots == nil {
		select {
		case c.answerSlots <- struct{}{}:
			r.slots = c.answerSlots
		case <-c.closed:
			return
		}
	}
	switch {
	case err != nil || r.Method == "":
		r.ID = json.RawMessage("-1")
		c.reply(r, nil, refuse("the frame is not a request: send one JSON object with method, params and id"))
	case notifies:
		r.ID = json.RawMessage("-1")
		c.reply(r, nil, refuse("the notification %q is not known; nothing was done", r.Method))
	case full:
		c.reply(r, nil, refuse("%d requests of this connection are not answered yet, and no more may be; nothing was done. Send it again once one of them is answered", maxRequests))
	default:
		c.handle(r)
	}
}

// takeRequestSlot reports whether a request has the slot it needs; one that never blocks needs none.
func (c *Connection) takeRequestSlot(r *request) bool {
	mayBlock := r.Method == "process/start" || blocking[r.Method] != nil
	if !mayBlock || c.session == nil {
		return true
	}
	select {
	case c.requestSlots <- struct{}{}:
		r.slots = c.requestSlots
		return true
	default:
		return false
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
		// Ends when the command runs, or will not, or the connection ends; leave waits.
		c.handlers.Go(func() {
			defer c.recovered(r)
			c.start(r)
		})
	case blocking[r.Method] != nil:
		// Ends when the request is answered or the connection ends; leave waits.
		c.handlers.Go(func() {
			if r.large = large[r.Method]; r.large && !c.takeContentSlot() {
				return // the connection has ended
			}
			c.answer(r, blocking[r.Method])
		})
	default:
		c.reply(r, nil, &rpcError{codeMethodNotFound, "toold does not serve the method " + r.Method + "; nothing was done"})
	}
}

func (c *Connection) answer(r request, do method) {
	defer c.recovered(r)
	result, e := do(c, r.Params)
	c.reply(r, result, e)
}

// recovered answers a request that panicked.
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
	c.session = s
	c.attached.Store(s)
	return object{"sessionId": s.id, "environmentInfo": c.environment()}, nil
}

func (c *Connection) info(json.RawMessage) (any, *rpcError) { return c.environment(), nil }

// environment describes where processes run, without optional capabilities.
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

// takeContentSlot waits for a content slot, and reports false if the connection ends before.
func (c *Connection) takeContentSlot() bool {
	select {
	case c.contentSlots <- struct{}{}:
		return true
	case <-c.closed:
		return false
	}
}

func (c *Connection) releaseContent() {
	select {
	case <-c.contentSlots:
	default: // see readWithApproval
	}
}

// readWithApproval reads by a call of look that awaits approval. Its request has a content slot, which is free
// meanwhile.
func (c *Connection) readWithApproval(f file, arguments map[string]any) (s files.Sight, e *rpcError) {
	c.releaseContent()        // a person may take long
	defer c.takeContentSlot() // without effect once the connection has ended
	ret, e := c.runCall(f, "look", arguments)
	if e != nil {
		return s, e
	}
	if err := json.Unmarshal([]byte(ret.Result), &s); err != nil {
		return s, refuse("the content cannot be read: %v", err)
	}
	if s.Missing {
		return s, missing()
	}
	return s, nil
}
