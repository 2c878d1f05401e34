// Package onboard connects installed agents to toold, tests the connection, and disconnects them.
package onboard

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/toold/toold/executor"
	"github.com/toold/toold/internal/console"
	"github.com/toold/toold/internal/doctor"
	"github.com/toold/toold/internal/reach"
	"github.com/toold/toold/internal/service"
	"github.com/toold/toold/internal/tokens"
	"github.com/toold/toold/interop/connect"
)

// Agents connects installed agents to a daemon, or disconnects them.
type Agents struct {
	console.Console
	Daemon    reach.Daemon
	Flags     []string // with which agents start toold
	Yes, Undo bool
	Ensure    func(context.Context) (service.Daemon, error) // returns the daemon, and starts it if necessary

	results []connected
}

type connected struct {
	Agent   string           `json:"agent"`
	Found   string           `json:"found,omitempty"`
	Status  string           `json:"status"`         // connected, already, planned, failed, undone
	Diff    string           `json:"diff,omitempty"` // of files, without the token
	Notes   []string         `json:"notes,omitempty"`
	Proof   string           `json:"proof,omitempty"`
	Reason  string           `json:"reason,omitempty"`
	Undone  []connect.Undone `json:"undone,omitempty"`
	Failure error            `json:"-"`
}

// Names returns the known agents.
func Names() (names []string) {
	for _, a := range connect.Agents() {
		names = append(names, a.Name)
	}
	return names
}

// Run connects or disconnects agents. If named is set, an agent that is not installed is an error.
func (c *Agents) Run(ctx context.Context, agents []connect.Agent, named bool) error {
	if c.Undo {
		c.takeBack(agents, named)
	} else if err := c.connect(ctx, agents, named); err != nil {
		return err
	}
	return errors.Join(c.report(), c.releaseDaemon(context.WithoutCancel(ctx)))
}

// Chosen returns the agents that operands name, or all if there are none. The word mcp may precede the name of a
// client.
func Chosen(args []string) (agents []connect.Agent, _ error) {
	if len(args) == 0 {
		return connect.Agents(), nil
	}
	for i, name := range args {
		if name == "mcp" && i+1 < len(args) {
			continue
		}
		a, ok := connect.Named(name)
		if name == "mcp" {
			return nil, errors.New("name a client: toold connect mcp zed")
		}
		if !ok {
			return nil, fmt.Errorf("no agent is called %q; there are %s", name, strings.Join(Names(), ", "))
		}
		if !slices.ContainsFunc(agents, func(b connect.Agent) bool { return b.Name == a.Name }) {
			agents = append(agents, a)
		}
	}
	return agents, nil
}

// setup returns the connection of an agent. Without a token, Token is a placeholder.
func (c *Agents) setup(agent string) (connect.Setup, error) {
	program, err := os.Executable()
	if err != nil {
		return connect.Setup{}, fmt.Errorf("cannot find this program: %w", err)
	}
	s := connect.Setup{Home: os.Getenv("HOME"), Getenv: os.Getenv, StateDir: c.Daemon.Config.StateDir, Program: program, Flags: slices.Clone(c.Flags), Token: "made when you agree"}
	if t, err := tokens.Read(tokens.In(c.Daemon.Config.StateDir).Agent(agent)); err == nil {
		s.Token = t.Secret
	}
	at, err := c.Daemon.Endpoint()
	s.URL = strings.TrimSuffix(at.URL, "/v1/ws")
	if errors.Is(err, reach.ErrNotRunning) {
		s.URL, err = "ws://"+c.Daemon.Config.Listen, nil
	}
	return s, err
}

func (c *Agents) connect(ctx context.Context, agents []connect.Agent, named bool) error {
	plans, err := c.plans(agents, named)
	if err != nil {
		return err
	}
	if len(plans) > 0 && c.JSON && !c.Yes {
		return c.planned(plans)
	}
	if len(plans) > 0 {
		if err := c.ask(); err != nil {
			return err
		}
	}
	connects := slices.ContainsFunc(c.results, func(r connected) bool { return r.Status == "already" })
	if len(plans) == 0 && !connects {
		if len(c.results) == 0 {
			return fmt.Errorf("no agent was found; there could be %s", strings.Join(Names(), ", "))
		}
		return nil
	}
	// A test that is interrupted must not leave its token or directory.
	ctx, stop := console.Interruptible(ctx, syscall.SIGPIPE)
	defer stop()
	d, err := c.Ensure(ctx)
	if err != nil {
		return fmt.Errorf("nothing was changed: %w", err)
	}
	if d.Started {
		fmt.Fprintf(c.Err, "the daemon runs in the background now: %s\n", d.URL)
		if err := lendDaemon(c.Daemon.Config.StateDir); err != nil {
			return err
		}
	}
	for _, p := range plans {
		if ctx.Err() == nil {
			c.results = append(c.results, c.establish(ctx, p.Agent))
		}
	}
	return nil
}

// plans returns the plans for several agents, without those for which there is nothing to do.
func (c *Agents) plans(agents []connect.Agent, named bool) (plans []connect.Plan, _ error) {
	for _, a := range agents {
		p, ok, err := c.plan(a, named)
		if err != nil {
			return nil, err
		}
		if ok {
			plans = append(plans, p)
		}
	}
	return plans, nil
}

// plan returns what connecting an agent changes. ok is false if there is nothing to do.
func (c *Agents) plan(a connect.Agent, named bool) (p connect.Plan, ok bool, err error) {
	s, err := c.setup(a.Name)
	if err != nil {
		return p, false, err
	}
	found := a.Found(s)
	switch {
	case found == "" && !named:
		return p, false, nil
	case found == "":
		return p, false, fmt.Errorf("%s was not found: neither its program on PATH nor its configuration", a.Title)
	}
	if p, err = a.Plan(s); err != nil {
		c.results = append(c.results, connected{Agent: a.Name, Found: found, Status: "failed", Failure: err, Reason: err.Error()})
		return p, false, nil
	}
	if p.Empty() && c.hasToken(a.Name) {
		c.results = append(c.results, connected{Agent: a.Name, Found: found, Status: "already", Notes: a.Warnings(s)})
		return p, false, nil
	}
	if !c.JSON {
		fmt.Fprintf(c.Err, "%s (%s):\n", a.Title, found)
		if err := c.Show(p.Diff()); err != nil {
			return p, false, err
		}
		c.printNotes(notes(a, s))
	}
	return p, true, nil
}

func (c *Agents) hasToken(agent string) bool {
	_, err := tokens.Read(tokens.In(c.Daemon.Config.StateDir).Agent(agent))
	return err == nil
}

func (c *Agents) ask() error {
	if c.Yes {
		return nil
	}
	if !executor.IsTerminal(c.In) {
		return console.Usage(errors.New("nothing was changed: no one can be asked here; agree with --yes"))
	}
	executor.DropInput(c.In) // discards earlier input
	fmt.Fprintf(c.Err, "Change these files? Each change is tried first. [y/N] ")
	line, _ := bufio.NewReader(c.In).ReadString('\n')
	if answer := strings.ToLower(strings.TrimSpace(line)); answer != "y" && answer != "yes" {
		return errors.New("nothing was changed")
	}
	return nil
}

// establish tests and makes the change for one agent. It plans again with the token. After a failure, it revokes the
// token if that is new.
func (c *Agents) establish(ctx context.Context, a connect.Agent) (r connected) {
	r = connected{Agent: a.Name, Status: "failed"}
	file := tokens.In(c.Daemon.Config.StateDir).Agent(a.Name)
	_, err := os.Lstat(file)
	fresh := err != nil
	defer func() {
		if r.Failure != nil && fresh {
			_ = tokens.Revoke(file)
		}
	}()
	_, err = tokens.Make(file)
	s, problem := c.setup(a.Name)
	if r.Failure = errors.Join(err, problem); r.Failure != nil {
		return r
	}
	r.Found, r.Notes = a.Found(s), notes(a, s)
	p, err := a.Plan(s)
	if err != nil {
		r.Failure = err
		return r
	}
	r.Diff = p.Diff()
	if !c.JSON {
		fmt.Fprintf(c.Err, "trying %s …\n", a.Title)
	}
	if r.Proof, r.Failure = proof(ctx, p); r.Failure != nil {
		r.Failure = fmt.Errorf("nothing was changed for %s: %w", a.Title, r.Failure)
		return r
	}
	if r.Failure = p.Apply(); r.Failure == nil {
		r.Status = "connected"
	}
	return r
}

func proof(ctx context.Context, p connect.Plan) (string, error) {
	err := p.Prove(ctx)
	switch {
	case errors.Is(err, connect.ErrNoProgram):
		return "not proved with the program itself: " + err.Error(), nil
	case err != nil:
		return "", err
	case p.Agent.Partly() != "":
		return "a call ran, one was refused, none ran without the daemon; not proved with the program itself: " + p.Agent.Partly(), nil
	}
	return "a call ran, one was refused, none ran without the daemon; proved with the program itself", nil
}

// takeBack disconnects agents. It also revokes the token of a named agent whose connection was not recorded. Without
// names that token remains, since the user may have made it for their own configuration.
func (c *Agents) takeBack(agents []connect.Agent, named bool) {
	for _, a := range agents {
		list, err := connect.Undo(c.Daemon.Config.StateDir, a.Name)
		r := connected{Agent: a.Name, Status: "undone", Undone: list, Failure: err}
		if err != nil {
			r.Status = "failed"
		}
		left := list == nil && c.hasToken(a.Name)
		if left && !named {
			fmt.Fprintf(c.Err, "%s is not connected, but has a token; if no configuration of yours uses it: toold token revoke %[1]s\n", a.Name)
		}
		revokes := list != nil || left && named
		if err == nil && !revokes {
			continue // not connected
		}
		if err == nil {
			_ = tokens.Revoke(tokens.In(c.Daemon.Config.StateDir).Agent(a.Name))
		}
		c.results = append(c.results, r)
	}
}

// Findings repeats the tests of connected agents.
func (c *Agents) Findings(ctx context.Context) (list []doctor.Finding) {
	names, err := connect.Connected(c.Daemon.Config.StateDir)
	if err != nil {
		return []doctor.Finding{{Name: "connected agents", Is: err.Error()}}
	}
	ctx, stop := console.Interruptible(ctx, syscall.SIGPIPE) // as in connect
	defer stop()
	for _, name := range names {
		f := doctor.Finding{Name: "agent " + name, Fix: "toold connect " + name + ", or take it back: toold connect --undo " + name}
		if f.Is, err = c.proveAgain(ctx, name); err != nil {
			f.Is = err.Error()
		}
		f.OK = err == nil
		list = append(list, f)
	}
	return list
}

func (c *Agents) proveAgain(ctx context.Context, name string) (string, error) {
	a, ok := connect.Named(name)
	if !ok {
		return "", errors.New("this version does not know the agent")
	}
	s, err := c.setup(name)
	if err != nil {
		return "", err
	}
	p, err := a.Plan(s)
	if err != nil {
		return "", err
	}
	if dead := a.DeadHooks(s); len(dead) > 0 {
		return "", errors.New(strings.Join(dead, "; "))
	}
	if !p.Empty() || !c.hasToken(name) {
		return "", errors.New("its configuration, its token or the address of the daemon is another one than when it was connected")
	}
	return proof(ctx, p)
}
