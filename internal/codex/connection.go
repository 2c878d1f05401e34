package codex

import (
	"encoding/base64"
	"encoding/json"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/toold/toold/tools/files"
)

// A Connection is one client. A reader calls Accept and finally Close, a writer calls Run.
type Connection struct {
	srv    *Server
	client string
	write  func(frame []byte) error
	gone   chan struct{} // closed by Close
	ended  sync.Once
	wake   chan struct{} // capacity 1: there may be something to write
	slots  chan struct{} // one per request whose answer is not written
	large  chan struct{} // one per unwritten answer with content of a file
	asked  sync.WaitGroup

	session *session                // nil until initialize; set by the reader
	of      atomic.Pointer[session] // the same, for the writer

	mu      sync.Mutex
	queue   []response      // at most one for each request
	handles map[string]file // open ones
}

// Connect starts a connection of the client with this token name. Only Run calls write, which sends a text frame.
func (s *Server) Connect(client string, write func(frame []byte) error) *Connection {
	return &Connection{
		srv: s, client: client, write: write, gone: make(chan struct{}), handles: make(map[string]file),
		wake: make(chan struct{}, 1), slots: make(chan struct{}, maxRequests), large: make(chan struct{}, maxLarge),
	}
}

// Close ends the connection and drops waiting requests: Codex considers their commands failed. It may be called twice.
func (c *Connection) Close() { c.ended.Do(func() { close(c.gone) }) }

// poke wakes the writer. It never blocks.
func (c *Connection) poke() { notify(c.wake) }

func notify(wake chan<- struct{}) {
	select {
	case wake <- struct{}{}:
	default:
	}
}

// Run writes until the connection ends, a write fails, or ending is ready and nothing is owed. It waits for the
// connection's goroutines.
func (c *Connection) Run(ending <-chan struct{}) {
	defer c.leave()
	last := false
	for {
		busy, err := c.turn()
		switch {
		case err != nil:
			return
		case busy:
			continue
		case last && c.owesNothing():
			return
		}
		select {
		case <-c.wake:
		case <-ending:
			last, ending = true, nil
		case <-c.gone:
			return
		}
	}
}

func (c *Connection) leave() {
	c.Close()
	c.asked.Wait()
	if s := c.of.Load(); s != nil {
		s.detach(c)
	}
}

// turn writes waiting answers and one piece of each process. busy: there may be more.
func (c *Connection) turn() (busy bool, err error) {
	// Before the queue: a process announced later has its answer in the next one.
	shown := slices.DeleteFunc(c.of.Load().shown(c), func(p *process) bool { return !p.announced.Load() })
	c.mu.Lock()
	queue := c.queue
	c.queue = nil
	c.mu.Unlock()
	for i, answer := range queue {
		queue[i] = response{} // release it
		frame, err := json.Marshal(answer)
		if err != nil { // cannot happen: the types of wire.go marshal
			continue
		}
		if err := c.write(frame); err != nil {
			return false, err
		}
		if _, ok := answer.Result.(content); ok {
			c.unload()
		}
		<-c.slots
		busy = true
	}
	for _, p := range shown {
		frame := p.next()
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

func (c *Connection) owesNothing() bool {
	if len(c.slots) > 0 {
		return false
	}
	for _, p := range c.of.Load().shown(c) {
		if p.writtenAt().IsZero() {
			return false
		}
	}
	return true
}

// reply queues the answer to a request that has a slot. It must be called once for each.
func (c *Connection) reply(id json.RawMessage, result any, e *rpcError) {
	answer := response{ID: id, Result: result}
	if e != nil {
		answer = response{ID: id, Error: e}
	}
	c.mu.Lock()
	c.queue = append(c.queue, answer)
	c.mu.Unlock()
	c.poke()
}

// method carries out a request. Without an error, the result is not nil.
type method func(c *Connection, params json.RawMessage) (any, *rpcError)

func with[P any](do func(*Connection, P) (any, *rpcError)) method {
	return func(c *Connection, params json.RawMessage) (any, *rpcError) {
		var p P
		if e := decode(params, &p); e != nil {
			return nil, e
		}
		return do(c, p)
	}
}

func onFile[P interface{ file() (file, *rpcError) }](do func(*Connection, file, P) (any, *rpcError)) method {
	return with(func(c *Connection, p P) (any, *rpcError) {
		f, e := p.file()
		if e != nil {
			return nil, e
		}
		return do(c, f, p)
	})
}

// atOnce are the methods that never block. They are carried out in order.
var atOnce = map[string]method{
	"environment/info":  (*Connection).info,
	"process/write":     with((*Connection).writeInput),
	"process/signal":    with((*Connection).signal),
	"process/terminate": with((*Connection).terminate),
}

var waiting = map[string]method{
	"process/read":       with((*Connection).readOutput),
	"fs/getMetadata":     onFile((*Connection).getMetadata),
	"fs/readFile":        onFile((*Connection).readFile),
	"fs/readDirectory":   onFile((*Connection).readDirectory),
	"fs/canonicalize":    onFile((*Connection).canonicalize),
	"fs/walk":            onFile((*Connection).walk),
	"fs/open":            onFile((*Connection).open),
	"fs/readBlock":       with((*Connection).readBlock),
	"fs/close":           with((*Connection).closeFile),
	"fs/writeFile":       onFile((*Connection).writeFile),
	"fs/createDirectory": onFile((*Connection).createDirectory),
	"fs/remove":          onFile((*Connection).remove),
	"fs/copy":            with((*Connection).copy),
}

// Accept handles one frame. It blocks while too many answers are unwritten.
func (c *Connection) Accept(frame []byte) {
	var r request
	err := json.Unmarshal(frame, &r)
	notifies := len(r.ID) == 0 || isEmpty(r.ID)
	if err == nil && notifies && r.Method == "initialized" {
		return
	}
	select {
	case c.slots <- struct{}{}:
	case <-c.gone:
		return
	}
	switch unknown := json.RawMessage("-1"); {
	case err != nil || r.Method == "":
		c.reply(unknown, nil, refuse("this is no request: expected one JSON object with method, params and id"))
	case notifies:
		c.reply(unknown, nil, refuse("the notification %q is not known; nothing was done", r.Method))
	default:
		c.handle(r)
	}
}

func (c *Connection) handle(r request) {
	switch do := atOnce[r.Method]; {
	case r.Method == "initialize":
		c.answer(r, with((*Connection).initialize))
	case c.session == nil:
		c.reply(r.ID, nil, refuse("send initialize first; nothing was done"))
	case do != nil:
		c.answer(r, do)
	case r.Method == "process/start":
		// Ends when the command runs, or will not, or the connection ends; leave waits.
		c.asked.Go(func() {
			defer c.recovered(r)
			c.start(r)
		})
	case waiting[r.Method] != nil:
		// Ends when the request is answered or the connection ends; leave waits.
		c.asked.Go(func() { c.answer(r, waiting[r.Method]) })
	default:
		c.reply(r.ID, nil, &rpcError{codeMethodNotFound, "toold does not serve the method " + r.Method + "; nothing was done"})
	}
}

func (c *Connection) answer(r request, do method) {
	defer c.recovered(r)
	result, e := do(c, r.Params)
	c.reply(r.ID, result, e)
}

// recovered answers a request that panicked.
func (c *Connection) recovered(r request) {
	if p := recover(); p != nil {
		c.reply(r.ID, nil, &rpcError{codeInternal, c.srv.opt.Fault(p)})
	}
}

func (c *Connection) initialize(p initializeParams) (any, *rpcError) {
	if c.session != nil {
		return nil, refuse("initialize was sent before")
	}
	s, e := c.srv.session(c.client, p.ResumeSessionID)
	if e == nil {
		e = s.attach(c)
	}
	if e != nil {
		return nil, e
	}
	c.session = s
	c.of.Store(s)
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

// content is an answer with content of a file. It takes an element of large until it is written.
type content map[string]any

// load reads a part of a file. It blocks while too much content is unwritten. The caller returns a content or calls
// unload.
func (c *Connection) load(f file, part map[string]any) (s files.Sight, e *rpcError) {
	select {
	case c.large <- struct{}{}:
	case <-c.gone:
		return s, refuse("the connection has ended")
	}
	if s, e = c.look(f, "read", part); e != nil {
		c.unload()
	}
	return s, e
}

func (c *Connection) unload() {
	select {
	case <-c.large:
	default: // see askToRead
	}
}

// askToRead reads a file for which a person decides. The caller holds an element of large.
func (c *Connection) askToRead(f file) (s files.Sight, e *rpcError) {
	c.unload() // a person may take long
	defer func() {
		select {
		case c.large <- struct{}{}:
		case <-c.gone:
		}
	}()
	ret, e := c.call(f.limit, "read_file", map[string]any{"file_path": f.path, "encoding": "base64"})
	if e != nil || ret.File == nil || ret.File.Bytes == 0 {
		return files.Sight{EOF: true}, e
	}
	data, err := base64.StdEncoding.DecodeString(ret.Result)
	if err != nil {
		return s, refuse("the content cannot be read: %v", err)
	}
	return files.Sight{Data: data, EOF: true}, nil
}
