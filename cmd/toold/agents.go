package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toold/toold/executor"
	"github.com/toold/toold/internal/config"
	"github.com/toold/toold/internal/console"
	"github.com/toold/toold/internal/doctor"
	"github.com/toold/toold/internal/reach"
	"github.com/toold/toold/internal/tokens"
	"github.com/toold/toold/interop/connect"
)

type connecting struct {
	*global
	cfg       config.Config
	yes, undo bool
	results   []connected
}

type connected struct {
	Agent   string           `json:"agent"`
	Found   string           `json:"found,omitempty"`
	Status  string           `json:"status"`         // connected, already, planned, failed, undone
	Diff    string           `json:"diff,omitempty"` // without the token
	Notes   []string         `json:"notes,omitempty"`
	Proof   string           `json:"proof,omitempty"`
	Reason  string           `json:"reason,omitempty"`
	Undone  []connect.Undone `json:"undone,omitempty"`
	Failure error            `json:"-"`
}

func connectCommand(g *global) *cobra.Command {
	c := &connecting{global: g}
	var server lettaServer
	cmd := &cobra.Command{
		Use: "connect [AGENT | mcp CLIENT | letta --url URL]", Short: "Have the agents that are installed here run in toold",
		Long: "Finds installed agents, shows the exact change of their configuration, asks once, proves\n" +
			"each change with the agent's own program and a scripted model on this machine, and makes\n" +
			"it. The daemon is started in the background unless one runs. AGENT is one of:\n  " +
			strings.Join(agentNames(), ", ") + "\n\n" +
			"With `--json` and without `--yes` the changes are only listed. `--undo` puts the files back as they were; from a file that was changed since it takes\n" +
			"out what was written, and shows that.\n\n" +
			"`connect letta --url URL` gives conversations of a running server of Letta toold's tools and\n" +
			"decides about its own, until it is interrupted, as `toold letta` does.",
		Args: cobra.MaximumNArgs(2), ValidArgs: append(agentNames(), "mcp"),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch of := slices.Equal(args, []string{"letta"}); {
			case server.URL != "" && of && !c.undo:
				return server.serve(cmd.Context(), g)
			case server.URL != "":
				return console.Usage(errors.New("--url is of `toold connect letta` alone"))
			}
			return c.run(cmd.Context(), args)
		},
	}
	server.flags(cmd)
	cmd.Flags().BoolVarP(&c.yes, "yes", "y", false, "make the changes without asking")
	cmd.Flags().BoolVar(&c.undo, "undo", false, "take the changes back")
	return cmd
}

func agentNames() (names []string) {
	for _, a := range connect.Agents() {
		names = append(names, a.Name)
	}
	return names
}

func (c *connecting) run(ctx context.Context, args []string) error {
	agents, err := chosen(args)
	if err != nil {
		return console.Usage(err)
	}
	read := c.load
	if c.undo {
		read = c.remote
	}
	if c.cfg, err = read(); err != nil {
		return err
	}
	if c.undo {
		c.takeBack(agents)
	} else if err := c.connect(ctx, agents, len(args) > 0); err != nil {
		return err
	}
	return errors.Join(c.report(), c.releaseDaemon(ctx))
}

func chosen(args []string) ([]connect.Agent, error) {
	if len(args) == 0 {
		return connect.Agents(), nil
	}
	name := args[len(args)-1]
	a, ok := connect.Named(name)
	if !ok || len(args) == 2 && args[0] != "mcp" {
		return nil, fmt.Errorf("no agent is called %q; there are %s", strings.Join(args, " "), strings.Join(agentNames(), ", "))
	}
	return []connect.Agent{a}, nil
}

// setup is the connection of an agent. Without a token, Token is a placeholder.
func (c *connecting) setup(agent string) (connect.Setup, error) {
	program, err := os.Executable()
	if err != nil {
		return connect.Setup{}, fmt.Errorf("cannot find this program: %w", err)
	}
	s := connect.Setup{Home: os.Getenv("HOME"), Getenv: os.Getenv, StateDir: c.cfg.StateDir, Program: program, Token: "made when you agree"}
	if dir := os.Getenv("TOOLD_STATE_DIR") + c.options.StateDir; dir != "" {
		s.Flags = append(s.Flags, "--state-dir", c.cfg.StateDir)
	}
	if file := os.Getenv("TOOLD_CONFIG") + c.options.Path; file != "" {
		s.Flags = append(s.Flags, "--config", c.cfg.File)
	}
	if t, err := tokens.Read(tokens.In(c.cfg.StateDir).Agent(agent)); err == nil {
		s.Token = t.Secret
	}
	at, err := c.daemon(c.cfg).Endpoint()
	s.URL = strings.TrimSuffix(at.URL, "/v1/ws")
	if errors.Is(err, reach.ErrNone) {
		s.URL, err = "ws://"+c.cfg.Listen, nil
	}
	return s, err
}

func (c *connecting) connect(ctx context.Context, agents []connect.Agent, named bool) error {
	var plans []connect.Plan
	for _, a := range agents {
		p, ok, err := c.plan(a, named)
		if err != nil {
			return err
		}
		if ok {
			plans = append(plans, p)
		}
	}
	if len(plans) > 0 && c.JSON && !c.yes {
		return c.planned(plans)
	}
	if len(plans) > 0 {
		if err := c.ask(plans); err != nil {
			return err
		}
	}
	connects := slices.ContainsFunc(c.results, func(r connected) bool { return r.Status == "already" })
	if len(plans) == 0 && !connects {
		if len(c.results) == 0 {
			return fmt.Errorf("no agent was found; there could be %s", strings.Join(agentNames(), ", "))
		}
		return nil
	}
	d, err := c.ensureDaemon(ctx, c.cfg)
	if err != nil {
		return fmt.Errorf("nothing was changed: %w", err)
	}
	if d.Started {
		fmt.Fprintf(c.Err, "the daemon runs in the background now: %s\n", d.URL)
		if err := lendDaemon(c.cfg.StateDir); err != nil {
			return err
		}
	}
	for _, p := range plans {
		r := c.establish(ctx, p.Agent)
		c.results = append(c.results, r)
	}
	return nil
}

// plan shows what connecting changes; false if nothing.
func (c *connecting) plan(a connect.Agent, named bool) (p connect.Plan, ok bool, err error) {
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

func (c *connecting) hasToken(agent string) bool {
	_, err := tokens.Read(tokens.In(c.cfg.StateDir).Agent(agent))
	return err == nil
}

func (c *connecting) ask(plans []connect.Plan) error {
	if c.yes {
		return nil
	}
	if !executor.IsTerminal(c.In) {
		return console.Usage(errors.New("nothing was changed: no one can be asked here; agree with --yes"))
	}
	fmt.Fprintf(c.Err, "Change these files? Each change is tried first. [y/N] ")
	line, _ := bufio.NewReader(c.In).ReadString('\n')
	if answer := strings.ToLower(strings.TrimSpace(line)); answer != "y" && answer != "yes" {
		return errors.New("nothing was changed")
	}
	return nil
}

// establish proves and makes the change of one agent.
func (c *connecting) establish(ctx context.Context, a connect.Agent) (r connected) {
	r = connected{Agent: a.Name, Status: "failed"}
	file := tokens.In(c.cfg.StateDir).Agent(a.Name)
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

func (c *connecting) takeBack(agents []connect.Agent) {
	for _, a := range agents {
		list, err := connect.Undo(c.cfg.StateDir, a.Name)
		r := connected{Agent: a.Name, Status: "undone", Undone: list, Failure: err}
		if err != nil {
			r.Status = "failed"
		}
		if list == nil && err == nil {
			continue
		}
		if err == nil {
			_ = tokens.Revoke(tokens.In(c.cfg.StateDir).Agent(a.Name)) // it may have been revoked
		}
		c.results = append(c.results, r)
	}
}

// agentFindings repeats the proofs of connected agents.
func (g *global) agentFindings(ctx context.Context, cfg config.Config) (list []doctor.Finding) {
	names, err := connect.Connected(cfg.StateDir)
	if err != nil {
		return []doctor.Finding{{Name: "connected agents", Is: err.Error()}}
	}
	for _, name := range names {
		f := doctor.Finding{Name: "agent " + name, Fix: "toold connect " + name + ", or take it back: toold connect --undo " + name}
		if f.Is, err = g.proveAgain(ctx, cfg, name); err != nil {
			f.Is = err.Error()
		}
		f.OK = err == nil
		list = append(list, f)
	}
	return list
}

func (g *global) proveAgain(ctx context.Context, cfg config.Config, name string) (string, error) {
	a, ok := connect.Named(name)
	if !ok {
		return "", errors.New("this version does not know the agent")
	}
	c := &connecting{global: g, cfg: cfg}
	s, err := c.setup(name)
	if err != nil {
		return "", err
	}
	p, err := a.Plan(s)
	if err != nil {
		return "", err
	}
	if !p.Empty() || !c.hasToken(name) {
		return "", errors.New("its configuration, its token or the address of the daemon is another one than when it was connected")
	}
	return proof(ctx, p)
}
