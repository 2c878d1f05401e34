package letta

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/toold/toold/interop/link"
)

type bridge struct {
	Options
	conversation string
	daemon       *link.Link
	calls        sync.WaitGroup

	dir atomic.Value // string: working directory of the conversation

	mu      sync.Mutex
	agent   string
	own     []string            // tools of toold that the server accepted on this connection
	running map[string]*running // by tool_call_id, or by request_id for permissions
}

const maxCalls = 64

type running struct {
	permission bool
	seen       bool   // the server has listed the call
	cancel     func() // ends a call that the agent no longer needs
}

// serve serves the conversation over one connection. reached means that the setup succeeded.
func (b *bridge) serve(ctx context.Context) (reached bool, err error) {
	c, err := dial(ctx, b.URL, b.Token)
	if err != nil {
		return false, err
	}
	// Ends with the connection.
	stop := context.AfterFunc(ctx, func() { c.ws.Close() })
	defer stop()
	defer c.ws.Close()
	b.dir.Store(b.Dir)
	b.mu.Lock()
	b.own, b.running = nil, make(map[string]*running)
	b.mu.Unlock()
	status := make(chan device, 1)
	setUp := make(chan error, 1)
	// Ends with the connection; waited for below.
	go func() {
		err := b.setUp(ctx, c, status)
		if err != nil {
			c.ws.Close()
		}
		setUp <- err
	}()
	for {
		f, err := c.read()
		if err != nil {
			if cause := <-setUp; cause != nil {
				return false, cause
			}
			return true, err
		}
		if f.Type == "update_device_status" && f.Device != nil && b.concerns(f) {
			keep(status, *f.Device)
		}
		b.handle(ctx, c, f)
	}
}

func keep(latest chan device, d device) {
	select {
	case <-latest:
	default:
	}
	latest <- d
}

func (b *bridge) setUp(ctx context.Context, c *connection, status <-chan device) error {
	info, err := c.request(ctx, fields{"type": "app_server_info"})
	switch {
	case err != nil:
		return err
	case info.Protocol != 1 || !info.Capabilities["runtime_external_tools_update"]:
		return fmt.Errorf("%w: Letta Code %s speaks version %d of the protocol and takes tools: %v; expected version 1 that does",
			errRefused, info.Version, info.Protocol, info.Capabilities["runtime_external_tools_update"])
	}
	err = b.findAgent(func() ([]named, error) {
		f, err := c.request(ctx, fields{"type": "agent_list"})
		return f.Agents, err
	})
	if err != nil {
		return err
	}
	if _, err := c.request(ctx, fields{"type": "sync", "runtime": b.runtime(), "recover_approvals": true, "force_device_status": true}); err != nil {
		return fmt.Errorf("%w: %w", errRefused, err)
	}
	if err := b.demandStrict(ctx, status); err != nil {
		return err
	}
	tools, err := b.offered(ctx)
	if err != nil {
		return err
	}
	_, err = c.request(ctx, fields{"type": "runtime_external_tools_update", "updates": []fields{{
		"runtimes": []runtime{b.runtime()}, "external_tools": []fields{{"tools": tools}},
	}}})
	if err != nil {
		return err
	}
	b.mu.Lock()
	for _, t := range tools {
		b.own = append(b.own, t["name"].(string))
	}
	b.mu.Unlock()
	b.Say(fmt.Sprintf("connected to Letta Code %s: agent %s, conversation %s", info.Version, b.runtime().Agent, b.conversation))
	return nil
}

func (b *bridge) runtime() runtime {
	b.mu.Lock()
	defer b.mu.Unlock()
	return runtime{b.agent, b.conversation}
}

func (b *bridge) concerns(f frame) bool {
	about := f.Runtime
	if about == (runtime{}) {
		about = runtime{f.Agent, f.Conversation}
	}
	return about == b.runtime()
}

func (b *bridge) findAgent(agents func() ([]named, error)) error {
	if b.runtime().Agent != "" {
		return nil
	}
	list, err := agents()
	if err != nil {
		return err
	}
	if len(list) == 1 {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.agent = list[0].ID
		return nil
	}
	names := []string{}
	for _, a := range list {
		names = append(names, a.ID+" ("+a.Name+")")
	}
	return fmt.Errorf("%w: it has %d agents; name one by --agent: %s", errRefused, len(names), strings.Join(names, ", "))
}

// demandStrict waits for the permission mode strict, because in other modes the server runs some tools without asking.
// follow switches the mode.
func (b *bridge) demandStrict(ctx context.Context, status <-chan device) error {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	for {
		select {
		case d := <-status:
			if d.Mode == "strict" {
				return nil
			}
		case <-ctx.Done():
			return fmt.Errorf("%w: the conversation did not switch to the permission mode strict, without which tools run unasked", errRefused)
		}
	}
}

// offered returns the daemon's tools except those with a name that Letta Code uses too, so that permission requests
// are unambiguous.
func (b *bridge) offered(ctx context.Context) (list []fields, err error) {
	agent, err := b.daemon.Get(ctx, b.Dir)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errRefused, err)
	}
	for _, t := range agent.Hello().Tools {
		if slices.Contains(builtIn(), t.Name) {
			continue
		}
		list = append(list, fields{"name": t.Name, "label": t.Name, "description": t.Description, "parameters": t.Parameters})
	}
	return list, nil
}

// builtIn lists names of past and present tools of Letta Code, in lower case.
func builtIn() []string {
	return []string{"apply_patch", "shell", "exec_command", "write_stdin", "memory", "task", "agent", "list_dir", "grep_files"}
}

// isOwn reports whether toold executes a tool, which the server must have accepted on this connection. Otherwise a
// tool with this name belongs to another program.
func (b *bridge) isOwn(name string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Contains(b.own, name)
}

func (b *bridge) handle(ctx context.Context, c *connection, f frame) {
	switch {
	case f.Type == "external_tool_call_request":
		why := b.begin(ctx, f.CallID, false, func(ctx context.Context) { b.execute(ctx, c, f) })
		if why != "" {
			c.send(fields{"type": "external_tool_call_response", "request_id": f.RequestID, "error": why})
		}
	case !b.concerns(f):
	case f.Type == "control_request" && f.Request.Subtype == "can_use_tool":
		why := b.begin(ctx, f.RequestID, true, func(ctx context.Context) { b.decide(ctx, c, f) })
		if why == crowded {
			c.send(b.answer(f, why))
		}
	case f.Loop != nil:
		b.listed(f.Loop.Executing, false, f.Loop.Status == "WAITING_ON_INPUT")
	case f.Device != nil:
		b.follow(c, *f.Device)
	}
}

const crowded = "toold has too many calls of this conversation; nothing ran. Wait for their results"

func (b *bridge) begin(ctx context.Context, id string, permission bool, do func(context.Context)) (why string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.running[id] != nil {
		return "a call with this id runs already; nothing ran"
	}
	if len(b.running) >= maxCalls {
		return crowded
	}
	ctx, cancel := context.WithCancel(ctx)
	all := b.running
	all[id] = &running{permission: permission, cancel: cancel}
	b.calls.Go(func() {
		defer func() {
			cancel()
			b.mu.Lock()
			defer b.mu.Unlock()
			delete(all, id)
		}()
		do(ctx)
	})
	return ""
}

// listed cancels calls that the server no longer lists. over means that the turn has ended, so that unlisted calls
// will never be listed.
func (b *bridge) listed(ids []string, permissions, over bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for id, r := range b.running {
		if r.permission != permissions {
			continue
		}
		switch {
		case slices.Contains(ids, id):
			r.seen = true
		case r.seen || over:
			r.cancel()
		}
	}
}

func (b *bridge) follow(c *connection, d device) {
	if dir := cmp.Or(d.Dir, d.BootDir); dir != "" {
		b.dir.Store(dir)
	}
	var pending []string
	for _, p := range d.Pending {
		pending = append(pending, p.RequestID)
	}
	b.listed(pending, true, false)
	if d.Mode != "strict" && d.Mode != "" {
		b.Say("the conversation is in the permission mode " + d.Mode + ", in which tools run unasked; switching to strict")
		c.send(fields{"type": "change_device_state", "runtime": b.runtime(), "payload": fields{"mode": "strict"}})
	}
}

func (b *bridge) directory() string {
	dir, _ := b.dir.Load().(string)
	return dir
}
