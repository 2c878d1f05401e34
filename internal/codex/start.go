package codex

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/toold/toold/internal/dispatch"
	"github.com/toold/toold/message"
	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/tools"
)

// dialect is the dialect of Codex's calls in the journal.
const dialect message.Dialect = "codex"

func (c *Connection) start(r request) {
	p, e := c.submit(r.Params)
	if e != nil {
		c.reply(r, nil, e)
		return
	}
	select {
	case <-p.decided:
	case <-c.closed:
		p.call.Load().Cancel("Codex went away before the command was let run")
		<-p.decided
	}
	p.mu.Lock()
	e = p.refused
	p.mu.Unlock()
	if e != nil {
		c.session.remove(p)
		p.unwatch()
		c.reply(r, nil, e)
		return
	}
	c.reply(r, processParams{p.id}, nil)
	p.announced.Store(true) // after the answer, which must precede output
	c.wakeWriter()
}

func (c *Connection) submit(params json.RawMessage) (*process, *rpcError) {
	var a startParams
	if e := decode(params, &a); e != nil {
		return nil, e
	}
	sub, e := c.submissionOf(a)
	if e != nil {
		return nil, e
	}
	s := c.session
	p := &process{
		session: s, id: string(a.ProcessID), terminal: a.TTY, input: a.TTY || a.PipeStdin,
		updates: make(chan struct{}, 1), decided: make(chan struct{}), changed: make(chan struct{}), writes: make(map[string]bool),
	}
	p.decide = sync.OnceFunc(func() { close(p.decided) })
	if e := s.add(p); e != nil {
		return nil, e
	}
	if n := s.countStart(sub.Call.ID); n > 1 {
		sub.Call.ID = fmt.Sprintf("%s.%d", sub.Call.ID, n)
	}
	s.endSeries()
	sub.Wake = p.wake
	p.mu.Lock()
	p.watcher = c.srv.opt.Dispatch.Submit(sub)
	p.call.Store(p.watcher.Call())
	p.mu.Unlock()
	p.call.Load().View(p.wake) // pump must see the end even if another connection of the session has come and gone
	// Ends when the call has ended or the session is dropped; Server.Close waits.
	c.srv.pumps.Go(p.pump)
	return p, nil
}

func (c *Connection) submissionOf(a startParams) (sub dispatch.Submission, e *rpcError) {
	switch {
	case a.ProcessID == "":
		return sub, badParams("processId is empty")
	case len(a.Argv) == 0 || a.Argv[0] == "":
		return sub, badParams("argv is empty")
	case a.Arg0 != nil:
		return sub, badParams("toold runs no program under another name (arg0); nothing ran")
	case a.EnforceManagedNetwork || !isNull(a.ManagedNetwork):
		return sub, refuse("this Codex wants its own network proxy for commands (managed network), which toold does not run; nothing ran. Switch it off in Codex: toold's policy decides which hosts commands reach")
	}
	dir, e := pathOf(a.Cwd)
	if e != nil {
		return sub, e
	}
	limit, e := limitOf(a.Sandbox)
	if e != nil {
		return sub, e
	}
	arguments := map[string]any{"command": script(a.Argv), "cwd": dir, "timeout": 0, "terminal": "off", "stdin": "closed"}
	if a.TTY {
		arguments["terminal"] = "single"
	}
	if a.TTY || a.PipeStdin {
		arguments["stdin"] = "open"
	}
	var id, thread string
	if a.Metadata != nil {
		id, thread = string(a.Metadata.ToolCallID), string(a.Metadata.ThreadID)
	}
	sub = c.submission(limit, cmp.Or(id, c.session.callID(a.ProcessID)), "bash", arguments)
	sub.Dir, sub.Request.Origin = dir, message.Origin{AgentID: thread, ConversationID: thread}
	return sub, nil
}

func (c *Connection) submission(limit sandbox.Limit, id, tool string, arguments map[string]any) dispatch.Submission {
	text, _ := json.Marshal(arguments) // cannot fail for strings, numbers and booleans
	return dispatch.Submission{
		Client: c.client, Conn: c.session.id, Dir: c.srv.opt.Workspace, Limit: limit,
		Program: &message.Program{Name: "codex"}, Request: &message.Request{Dialect: dialect},
		Call: message.ToolCall{ID: id, Name: tool, Arguments: text},
	}
}

func isNull(value json.RawMessage) bool { return len(value) == 0 || string(value) == "null" }

// script returns a command as a script for the tool bash. For bash -c or -lc it is the script itself, without the
// user's profile, which a login shell would read.
func script(argv []string) string {
	isScript := len(argv) == 3 && (argv[1] == "-c" || argv[1] == "-lc")
	if isScript && isBash(argv[0]) {
		return argv[2]
	}
	words := make([]string, len(argv))
	for i, word := range argv {
		words[i] = tools.Quote(word)
		if i == 0 && words[0] == word && !strings.Contains(word, "/") { // quoted, because it may be a keyword such as time
			words[0] = "'" + word + "'"
		}
	}
	return strings.Join(words, " ")
}

func isBash(program string) bool {
	dir, name := filepath.Split(program)
	return name == "bash" && slices.Contains([]string{"", "/bin/", "/usr/bin/"}, dir)
}

func (c *Connection) process(id string) (*process, *rpcError) {
	if p := c.session.find(id); p != nil {
		return p, nil
	}
	return nil, refuse("unknown process id %s", id)
}

func (c *Connection) readOutput(a readParams) (any, *rpcError) {
	p, e := c.process(a.ProcessID)
	if e != nil {
		return nil, e
	}
	limit := int64(readBytes)
	if a.MaxBytes != nil {
		limit = min(max(*a.MaxBytes, 0), limit)
	}
	answer := pendingRead{p, a.AfterSeq, limit}
	timeout := time.After(time.Duration(min(max(a.WaitMS, 0), time.Hour.Milliseconds())) * time.Millisecond)
	for {
		ready, more := p.hasOutput(a.AfterSeq)
		if ready {
			return answer, nil
		}
		select {
		case <-more:
		case <-timeout:
			return answer, nil
		case <-c.closed:
			return answer, nil
		}
	}
}

func (c *Connection) writeInput(a writeParams) (any, *rpcError) {
	p := c.session.find(a.ProcessID)
	switch {
	case p == nil:
		return object{"status": "unknownProcess"}, nil
	case !p.announced.Load():
		return object{"status": "starting"}, nil
	case !p.input || p.ended():
		return object{"status": "stdinClosed"}, nil
	case !p.acceptWrite(string(a.WriteID)):
		return object{"status": "accepted"}, nil
	}
	if e := p.call.Load().Input(tools.Input{Data: a.Chunk}, nil); e != nil {
		p.forgetWrite(string(a.WriteID))
		return nil, refuse("%s", e.Message)
	}
	return object{"status": "accepted"}, nil
}

const maxWrites = 4096

// acceptWrite reports whether a write is new. Codex repeats a write whose answer was lost.
func (p *process) acceptWrite(id string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if id == "" {
		return true
	}
	if p.writes[id] {
		return false
	}
	if len(p.writes) == maxWrites {
		clear(p.writes)
	}
	p.writes[id] = true
	return true
}

func (p *process) forgetWrite(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.writes, id)
}

func (c *Connection) signal(a signalParams) (any, *rpcError) {
	p, e := c.process(a.ProcessID)
	if e != nil {
		return nil, e
	}
	if a.Signal != "interrupt" {
		return nil, badParams("the signal %q is not known", a.Signal)
	}
	if !p.announced.Load() {
		return nil, refuse("process %s is starting", a.ProcessID)
	}
	if err := p.call.Load().Input(tools.Input{Signal: "SIGINT"}, nil); err != nil && !p.ended() {
		return nil, refuse("%s", err.Message)
	}
	return struct{}{}, nil
}

func (c *Connection) terminate(a processParams) (any, *rpcError) {
	p := c.session.find(a.ProcessID)
	if p == nil {
		return object{"running": false}, nil
	}
	p.mu.Lock() // held while submit submits the call
	call := p.call.Load()
	p.mu.Unlock()
	if call == nil || p.ended() {
		return object{"running": false}, nil
	}
	call.Cancel("Codex ended the process")
	return object{"running": true}, nil
}
