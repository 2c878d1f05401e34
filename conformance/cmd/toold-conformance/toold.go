//go:build linux

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/toold/toold/client"
	"github.com/toold/toold/conformance/suite"
	"github.com/toold/toold/message"
)

// toold is a daemon whose policy allows everything, with a person who says yes to what no
// policy can allow: only the sandbox is between a command and the machine.
type toold struct{ program string }

func (t toold) Version(ctx context.Context) (string, error) {
	return version(ctx, t.program, "--version")
}

func (toold) Files() []string { return nil }

const (
	tooldPolicy = `{version: 1, defaults: {bash: allow, read: allow, write: allow, net: allow, unanalysable: ask},
  unknown_paths: {read: allow, write: allow}, env: {unknown: allow}}`
	tooldConfig = `{version: 1, policy: %q, sandbox: %s, tokens: [{name: agent, roles: [agent]}, {name: approver, roles: [approver]}]}`
)

var tooldProfiles = map[string]string{
	"workspace-write": "{profile: workspace-write}", "read-only": "{profile: read-only}", "network-off": "{profile: workspace-write, network: off}",
	"full": "{profile: danger-full-access, i_understand_full_access: true}",
}

// tooldSession is a daemon of its own, and its clients.
type tooldSession struct {
	at              suite.Workspace
	daemon          *exec.Cmd
	agent, approver *client.Client
	approved        chan struct{} // closed when no more questions are answered
}

func (t toold) Open(ctx context.Context, at suite.Workspace) (suite.Session, error) {
	policy, config := filepath.Join(at.Scratch, "policy.yaml"), filepath.Join(at.Scratch, "config.yaml")
	settings := fmt.Appendf(nil, tooldConfig, policy, tooldProfiles[at.Profile])
	if err := errors.Join(os.WriteFile(policy, []byte(tooldPolicy), 0o600), os.WriteFile(config, settings, 0o600)); err != nil {
		return nil, err
	}
	state := filepath.Join(at.Home, ".local", "state", "toold")
	s := &tooldSession{at: at, approved: make(chan struct{})}
	s.daemon = exec.Command(t.program, "serve", "--json", "--listen", "127.0.0.1:0", "--workspace", at.Dir, "--state-dir", state, "--config", config)
	s.daemon.Env = append([]string{"HOME=" + at.Home, "PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8"}, at.Env...)
	if at.Window != nil {
		s.daemon.Stdin, s.daemon.SysProcAttr = at.Window, &syscall.SysProcAttr{Setsid: true, Setctty: true}
	}
	out, err := s.daemon.StdoutPipe()
	if err == nil {
		err = s.daemon.Start()
	}
	if err != nil {
		return nil, err
	}
	if err := s.connect(ctx, bufio.NewReader(out)); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// connect waits until the daemon is ready and connects to it.
func (s *tooldSession) connect(ctx context.Context, out *bufio.Reader) error {
	line, err := out.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("the daemon does not say that it is ready: %w", err)
	}
	var ready struct {
		Addresses  struct{ WS string }
		TokenFiles map[string]string `json:"token_files"`
	}
	if err := json.Unmarshal(line, &ready); err != nil {
		return err
	}
	for name, c := range map[string]**client.Client{"agent": &s.agent, "approver": &s.approver} {
		token, err := os.ReadFile(ready.TokenFiles[name])
		if err != nil {
			return err
		}
		if *c, err = client.Dial(ctx, client.Options{URL: ready.Addresses.WS, Token: strings.TrimSpace(string(token))}); err != nil {
			return err
		}
	}
	ctx = context.WithoutCancel(ctx)
	// Ends with its connection; Close waits.
	go func() {
		defer close(s.approved)
		s.approver.Approvals(ctx, client.ApprovalEvents{Requested: func(r message.ApprovalRequest) {
			s.approver.Decide(ctx, client.Decision{ApprovalID: r.ID, Approve: true})
		}})
	}()
	return nil
}

func (s *tooldSession) Close() error {
	if s.agent != nil && s.approver != nil {
		s.agent.Close()
		s.approver.Close()
		<-s.approved
	}
	return errors.Join(s.daemon.Process.Signal(syscall.SIGTERM), s.daemon.Wait())
}

// Run runs a command. What the policy refuses because it can see it is done again by a
// program into which it cannot see: the question is what the sandbox holds.
func (s *tooldSession) Run(ctx context.Context, c suite.Command) (suite.Result, error) {
	r, ret, err := s.call(ctx, c)
	if err == nil && ret.Decision != nil && ret.Decision.Action == "deny" {
		hidden := filepath.Join(filepath.Dir(s.at.Scratch), "attack.sh")
		if err := os.WriteFile(hidden, []byte(c.Script+"\n"), 0o644); err != nil {
			return r, err
		}
		c.Script = "exec bash " + hidden
		r, ret, err = s.call(ctx, c)
	}
	failed := err == nil && ret.ErrorType != nil
	ended := r.Exit >= 0 || r.Signal != "" || r.TimedOut
	if failed && !ended && ctx.Err() == nil {
		err = fmt.Errorf("%s: %.300s", *ret.ErrorType, ret.Result)
	}
	return r, err
}

// call makes a call and reads what is recorded of its output.
func (s *tooldSession) call(ctx context.Context, c suite.Command) (r suite.Result, ret message.ToolReturn, err error) {
	id, script := message.NewID("call"), c.Script
	for _, v := range c.Env {
		script = "export " + suite.Quote(v) + "\n" + script
	}
	args := map[string]any{"command": script, "cwd": c.Dir, "terminal": c.Terminal, "timeout": c.Timeout.Milliseconds()}
	defer context.AfterFunc(ctx, func() { s.agent.Cancel(id, "") })()
	ctx = context.WithoutCancel(ctx)
	ret, err = s.agent.Call(ctx, client.Call{ID: id, Tool: "bash", Arguments: args}, client.Events{
		Output: func(_ message.OutputDelta, data []byte) {
			if c.Live != nil {
				c.Live(data)
			}
		},
	})
	r = suite.Result{Exit: -1, TimedOut: ret.TimedOut}
	if ret.Signal != nil {
		r.Signal = *ret.Signal
	}
	if ret.ExitCode != nil {
		r.Exit = *ret.ExitCode
	}
	for name, to := range map[string]*string{"stdout": &r.Stdout, "stderr": &r.Stderr} {
		for more := err == nil && ret.StdoutBytes+ret.StderrBytes > 0; more; {
			part, data, e := s.agent.GetOutput(ctx, message.GetOutput{CallID: id, Stream: name, Offset: int64(len(*to)), Limit: 1 << 20})
			*to += string(data)
			err, more = e, e == nil && !part.EOF && len(data) > 0
		}
	}
	return r, ret, err
}
