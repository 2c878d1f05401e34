package main

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/zap"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/toold/toold/client"
	"github.com/toold/toold/internal/config"
	"github.com/toold/toold/internal/daemon"
	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/internal/tokens"
)

// callAs makes a call of bash with the token of a name: call-as NAME COMMAND.
func callAs(ts *testscript.TestScript, _ bool, args []string) {
	token, err := tokens.Read(tokens.In(filepath.Join(ts.Getenv("HOME"), ".local/state/toold")).Agent(args[0]))
	ts.Check(err)
	c, err := client.Dial(context.Background(), client.Options{URL: "ws://" + ts.Getenv("TOOLD_LISTEN") + "/v1/ws", Token: token.Secret})
	ts.Check(err)
	defer c.Close()
	ret, err := c.Call(context.Background(), client.Call{Tool: "bash", Arguments: map[string]any{"command": args[1]}}, client.Events{})
	ts.Check(err)
	_, err = ts.Stdout().Write([]byte(ret.Result))
	ts.Check(err)
}

// callSameID makes a call with the token agent, under the id of the call that runs and as another
// agent: call-same-id COMMAND.
func callSameID(ts *testscript.TestScript, _ bool, args []string) {
	secret, err := toold(ts, "token", "show", "agent")
	ts.Check(err)
	c, err := client.Dial(context.Background(), client.Options{URL: "ws://" + ts.Getenv("TOOLD_LISTEN") + "/v1/ws", Token: strings.TrimSpace(secret)})
	ts.Check(err)
	defer c.Close()
	list, err := c.ListCalls(context.Background(), "", false)
	ts.Check(err)
	if len(list) != 1 {
		ts.Fatalf("%d calls run", len(list))
	}
	ret, err := c.Call(context.Background(), client.Call{ID: list[0].CallID, AgentID: "another", Tool: "bash", Arguments: map[string]any{"command": args[0]}}, client.Events{})
	ts.Check(err)
	_, err = ts.Stdout().Write([]byte(ret.Result))
	ts.Check(err)
}

// A connection that was made with a token makes no call once that is revoked or rotated.
func TestARevokedTokenMakesNoCall(t *testing.T) {
	t.Parallel()
	needsSandbox(t)
	cfg := must.Get(config.Load(config.Options{
		Workspace: t.TempDir(), StateDir: filepath.Join(t.TempDir(), "state"), Listen: "127.0.0.1:0",
		Getenv: func(string) string { return "" },
	}))(t)
	d := must.Get(daemon.New(t.Context(), daemon.Options{Config: cfg, Log: zap.NewNop()}))(t)
	served := make(chan error, 1)
	// Ends when the test's context does; Cleanup waits.
	go func() { served <- d.Serve(t.Context()) }()
	t.Cleanup(func() { <-served })
	file := tokens.In(cfg.StateDir).Agent("codex")
	for name, end := range map[string]func(string) error{
		"revoked": tokens.Revoke,
		"rotated": func(file string) error { _, err := tokens.Rotate(file); return err },
	} {
		token := must.Get(tokens.Make(file))(t)
		c := must.Get(client.Dial(t.Context(), client.Options{URL: d.URL(), Token: token.Secret}))(t)
		call := func() error {
			_, err := c.Call(t.Context(), client.Call{Tool: "bash", Arguments: map[string]any{"command": "true"}}, client.Events{})
			return err
		}
		if err := call(); err != nil {
			t.Errorf("%s: a call before: %v", name, err)
		}
		must.Do(t, end(file))
		if err := call(); err == nil {
			t.Errorf("%s: a call was made with a token that is not in force", name)
		}
		c.Close()
		if _, err := client.Dial(t.Context(), client.Options{URL: d.URL(), Token: token.Secret}); err == nil {
			t.Errorf("%s: a connection was made with a token that is not in force", name)
		}
	}
}
