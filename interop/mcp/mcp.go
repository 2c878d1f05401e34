// Package mcp lets clients of the Model Context Protocol (https://modelcontextprotocol.io, versions 2025-11-25 and
// 2026-07-28) run tools through a daemon. If the daemon does not answer, nothing runs.
package mcp

import (
	"context"
	"errors"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toold/toold/client"
	"github.com/toold/toold/interop/link"
	"github.com/toold/toold/message"
)

// Options configures the connection to the daemon.
type Options struct {
	// Dial connects to the daemon with a token for a role.
	Dial func(ctx context.Context, role string) (*client.Client, error)
	// Question returns an approval request as text for a person.
	Question func(message.ApprovalRequest) string
	// Page returns the URL of an approval request's page. It may be nil.
	Page    func(approvalID string) string
	Version string // version of toold
	// Fault is called with the value of a panic. It returns the text for the client.
	Fault func(panicked any) string
}

const instructions = "These tools work on the user's machine, in a sandbox and under a policy. " +
	"A result that begins with the reason of a refusal is final: do not try to get around it; say what you wanted to do and let the user decide."

// Serve serves one client, one message per line, until in or ctx ends. It then cancels all calls and waits for them.
func Serve(ctx context.Context, o Options, in io.ReadCloser, out io.WriteCloser) error {
	s, err := newServer(ctx, o)
	if err != nil {
		return err
	}
	defer s.close()
	served := make(chan error, 1)
	to := newSharedWriter(out)
	// Ends with in. After ctx ends nothing waits for it, because the client may never answer.
	go func() {
		served <- s.mcp.Run(ctx, &mcp.IOTransport{Reader: newLines(in, to), Writer: to, MaxLineLength: -1})
	}()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

type server struct {
	options Options
	mcp     *mcp.Server
	link    *link.Link
	calls   calls

	conversation string // conversation id of all calls

	over    chan struct{} // closed to end all requests
	endOnce sync.Once

	// Only over HTTP:
	caller  Caller
	joinFor joinFor
	shared  bool               // shared by all requests with a token
	session *mcp.ServerSession // the only session; guarded by Handler.mu
	users   int                // running requests if shared; guarded by Handler.mu
}

func newServer(ctx context.Context, o Options) (*server, error) {
	s := &server{options: o, link: link.New(o.Dial), over: make(chan struct{}), conversation: message.NewID("mcp")}
	agent, err := s.link.Get(ctx, "agent")
	if err != nil {
		return nil, err
	}
	s.mcp = mcp.NewServer(&mcp.Implementation{Name: "toold", Title: "toold", Version: o.Version}, &mcp.ServerOptions{
		Instructions: instructions, Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}},
	})
	s.mcp.AddReceivingMiddleware(s.bound)
	results, err := message.SchemaOf[outcome]()
	if err != nil {
		return nil, err
	}
	for _, t := range agent.Hello().Tools {
		s.mcp.AddTool(&mcp.Tool{
			Name: t.Name, Description: t.Description, InputSchema: t.Parameters, OutputSchema: results, Annotations: hints(t.Name),
		}, s.handle)
	}
	return s, nil
}

// bound ends a request when the server or the HTTP request ends. It turns a panic into an error.
func (s *server) bound(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (r mcp.Result, err error) {
		defer func() {
			if fault := recover(); fault != nil {
				r, err = nil, errors.New(s.options.Fault(fault))
			}
		}()
		if method != "tools/call" {
			return next(ctx, method, req)
		}
		ctx, end := context.WithCancel(ctx)
		var watch sync.WaitGroup
		// Ends with the request.
		watch.Go(func() {
			defer end()
			select {
			case <-ctx.Done():
			case <-s.over:
			case <-lost(req):
			}
		})
		defer func() { end(); watch.Wait() }()
		return next(ctx, method, req)
	}
}

func (s *server) end() {
	s.calls.end()
	s.endOnce.Do(func() { close(s.over) })
}

func (s *server) close() {
	s.end()
	s.link.Close()
}

// hints returns annotations, which clients use only for display.
func hints(tool string) *mcp.ToolAnnotations {
	no := false
	switch tool {
	case "read_file", "grep", "glob", "bash_output", "list_calls":
		return &mcp.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true, DestructiveHint: &no, OpenWorldHint: &no}
	case "write_file", "edit_file", "multi_edit", "apply_patch", "bash_kill":
		return &mcp.ToolAnnotations{OpenWorldHint: &no}
	}
	return &mcp.ToolAnnotations{}
}
