// Package mcp lets clients of the Model Context Protocol run tools through a toold daemon:
// https://modelcontextprotocol.io, in the versions 2025-11-25 and 2026-07-28.
//
// Each tools/call is one call of the daemon: judged by its policy, run in its sandbox and
// recorded by it. When the daemon does not answer, nothing runs.
package mcp

import (
	"context"
	"io"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toold/toold/client"
	"github.com/toold/toold/interop/link"
	"github.com/toold/toold/message"
)

// Options say how the daemon is reached.
type Options struct {
	// Dial connects to the daemon with a token that has the role.
	Dial func(ctx context.Context, role string) (*client.Client, error)
	// Question describes a call to the person who is to decide it.
	Question func(message.ApprovalRequest) string
	Version  string // of toold
}

const instructions = "These tools work on the user's machine, in a sandbox and under a policy. " +
	"A result that begins with the reason of a refusal is final: do not try to get around it; say what you wanted to do and let the user decide."

// Serve answers one client that writes to in and reads from out, one JSON object a line,
// until in ends or ctx does. Calls that run then are cancelled, and Serve waits for their ends.
func Serve(ctx context.Context, o Options, in io.ReadCloser, out io.WriteCloser) error {
	s, err := newServer(ctx, o)
	if err != nil {
		return err
	}
	defer s.close()
	served := make(chan error, 1)
	// Ends with in. After ctx no one waits: the client may never answer what it was asked.
	go func() { served <- s.mcp.Run(ctx, &mcp.IOTransport{Reader: in, Writer: out}) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// server offers the tools of a daemon.
type server struct {
	options Options
	mcp     *mcp.Server
	link    *link.Link
	calls   calls

	conversation string // of all calls
}

func newServer(ctx context.Context, o Options) (*server, error) {
	s := &server{options: o, link: link.New(o.Dial), conversation: message.NewID("mcp")}
	agent, err := s.link.Get(ctx, "agent")
	if err != nil {
		return nil, err
	}
	s.mcp = mcp.NewServer(&mcp.Implementation{Name: "toold", Title: "toold", Version: o.Version}, &mcp.ServerOptions{
		Instructions: instructions, Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}},
	})
	for _, t := range agent.Hello().Tools {
		s.mcp.AddTool(&mcp.Tool{
			Name: t.Name, Description: t.Description, InputSchema: t.Parameters, Annotations: hints(t.Name),
		}, s.handle)
	}
	return s, nil
}

// close cancels the calls that run or wait, and ends the connections after them.
func (s *server) close() {
	s.calls.end()
	s.link.Close()
}

// hints are what a client may show about a tool. They decide nothing.
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
