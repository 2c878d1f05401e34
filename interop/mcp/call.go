package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toold/toold/client"
	"github.com/toold/toold/message"
)

type call struct {
	server *server
	client.Call
	form  bool           // the client can show forms
	url   bool           // the client can open URLs
	asked chan *question // receives the approval request of the call, at most one
	quit  chan string    // reason to end the call; capacity 1
	done  chan struct{}  // closed when the call has ended
	ret   message.ToolReturn
	err   error // why there is no return; ret and err are set before done is closed

	now  atomic.Value // string: state of the call, shown while waiting
	page atomic.Value // string: key of the request whose page the user was sent to

	questions sync.WaitGroup // goroutines of openQuestions
}

func (s *server) handle(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	c, err := s.resumed(ctx, req)
	if err == nil && c == nil {
		c, err = s.begin(req)
	}
	if err != nil {
		return failed(err.Error()), nil
	}
	return c.await(ctx, req)
}

func (s *server) begin(req *mcp.CallToolRequest) (*call, error) {
	c := &call{
		server: s, asked: make(chan *question, 1),
		quit: make(chan string, 1), done: make(chan struct{}),
	}
	c.now.Store("starting")
	c.form, c.url = asks(req.Session)
	c.Call = client.Call{ID: callID(req.Params), Tool: req.Params.Name, Arguments: arguments(req.Params), ConversationID: s.conversation}
	if p := req.Session.InitializeParams(); p != nil && p.ClientInfo != nil {
		c.AgentID = p.ClientInfo.Name
	}
	if err := s.calls.enter(c); err != nil {
		return nil, err
	}
	// Ends with the return, which cancel causes; calls.end waits.
	go func() {
		defer s.calls.leave(c)
		defer close(c.done)
		c.run()
	}()
	return c, nil
}

func (c *call) run() {
	ctx, finished := context.WithCancel(context.Background())
	defer c.questions.Wait()
	defer finished()
	made := make(chan struct{})
	// Ends with the return; run waits.
	go func() {
		defer close(made)
		c.ret, c.err = c.make(ctx)
	}()
	select {
	case <-made:
		return
	case reason := <-c.quit:
		if !c.stop(reason) {
			finished() // without a connection the daemon ends the call after limits.linger
		}
	}
	<-made
}

// cancel asks for the end of the call. It does not wait.
func (c *call) cancel(reason string) {
	select {
	case c.quit <- reason:
	default: // the call already ends
	}
}

func arguments(p *mcp.CallToolParamsRaw) json.RawMessage {
	if len(p.Arguments) == 0 || string(p.Arguments) == "null" {
		return json.RawMessage(`{}`)
	}
	return p.Arguments
}

func callID(p *mcp.CallToolParamsRaw) string {
	if id, ok := p.Meta["claudecode/toolUseId"].(string); ok && id != "" {
		return id
	}
	return message.NewID("call")
}

func (c *call) make(ctx context.Context) (message.ToolReturn, error) {
	ret, err := c.server.link.Call(ctx, "agent", c.Call, func() client.Events {
		c.openQuestions(ctx)
		c.now.Store("running")
		return c.events()
	})
	c.now.Store("")
	return ret, err
}

func (c *call) events() client.Events {
	return client.Events{
		Decision: func(d message.PolicyDecision) {
			if d.Action == "ask" {
				c.now.Store("waits for a person (toold watch): " + d.Reason)
			}
		},
		Queued:  func(message.ToolQueued) { c.now.Store("waits for its turn") },
		Started: func(message.ToolStarted) { c.now.Store("running") },
		Output: func(_ message.OutputDelta, data []byte) {
			if line := lastLine(data); line != "" {
				c.now.Store(line)
			}
		},
	}
}

func lastLine(data []byte) string {
	text := strings.TrimSpace(string(data))
	line := text[strings.LastIndexByte(text, '\n')+1:]
	const most = 200
	if len(line) > most {
		line = strings.ToValidUTF8(line[:most], "")
	}
	return line
}

func (c *call) await(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	tick := time.Tick(time.Second)
	begun := time.Now()
	for {
		select {
		case <-c.done:
			c.notifyComplete(ctx, req.Session)
			return c.result(), nil
		case q := <-c.asked:
			if r := c.ask(ctx, q, req.Session); r != nil {
				return r, nil
			}
		case <-tick:
			c.progress(ctx, req, time.Since(begun))
		case <-ctx.Done():
			c.cancel("the client has cancelled it")
			<-c.done
			return c.result(), nil
		}
	}
}

func (c *call) progress(ctx context.Context, req *mcp.CallToolRequest, since time.Duration) {
	token := req.Params.GetProgressToken()
	if token == nil {
		return
	}
	// Losing a notification does no harm.
	req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: since.Seconds(), Message: c.now.Load().(string)})
}

func (c *call) stop(reason string) bool {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	agent, err := c.server.link.Get(ctx, "agent")
	if err == nil {
		err = agent.Stop(ctx, c.ID, reason)
	}
	var refused *message.Error
	return err == nil || errors.As(err, &refused)
}

type outcome struct {
	ToolCallID  string              `json:"tool_call_id,omitempty" jsonschema:"names the call in the record"`
	Status      string              `json:"status" enum:"success,error"`
	Result      string              `json:"result" jsonschema:"what the call printed or returned, or why it did not run"`
	ErrorType   string              `json:"error_type,omitempty" jsonschema:"why the status is error"`
	ExitCode    *int                `json:"exit_code,omitempty"`
	Signal      *string             `json:"signal,omitempty" jsonschema:"that ended the command"`
	DurationMS  int64               `json:"duration_ms"`
	Truncated   bool                `json:"truncated" jsonschema:"result is not all of it"`
	StdoutBytes int64               `json:"stdout_bytes"`
	StderrBytes int64               `json:"stderr_bytes"`
	Diff        *string             `json:"diff,omitempty" jsonschema:"what the call changed in its file"`
	Decision    *message.Decision   `json:"decision,omitempty"`
	File        *message.File       `json:"file,omitempty"`
	Files       []message.File      `json:"files,omitempty"`
	Background  *message.Background `json:"background,omitempty"`
}

func (c *call) result() *mcp.CallToolResult {
	if c.err != nil {
		return failed(c.err.Error())
	}
	r := c.ret
	o := outcome{
		ToolCallID: r.CallID, Status: r.Status, Result: r.Result, ExitCode: r.ExitCode, Signal: r.Signal, DurationMS: r.DurationMS, Truncated: r.Truncated,
		StdoutBytes: r.StdoutBytes, StderrBytes: r.StderrBytes, Diff: r.Diff, Decision: r.Decision, File: r.File, Files: r.Files, Background: r.Background,
	}
	if r.ErrorType != nil {
		o.ErrorType = string(*r.ErrorType)
	}
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: r.Result}}, StructuredContent: o, IsError: r.Status != "success"}
}

func failed(text string) *mcp.CallToolResult {
	return &mcp.CallToolResult{
		Content: []mcp.Content{&mcp.TextContent{Text: text}}, StructuredContent: outcome{Status: "error", Result: text}, IsError: true,
	}
}
