package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/toold/toold/client"
	"github.com/toold/toold/executor"
	"github.com/toold/toold/internal/console"
	"github.com/toold/toold/internal/describe"
	"github.com/toold/toold/internal/display"
	"github.com/toold/toold/message"
	"github.com/toold/toold/policy"
)

func callCommand(g *global) *cobra.Command {
	c := &callRun{global: g}
	cmd := &cobra.Command{
		Use:   "call TOOL [OPERAND]...",
		Short: "Make one tool call and print what it prints",
		Args:  callOperands,
		RunE:  func(cmd *cobra.Command, args []string) error { return c.run(cmd, args) },
	}
	addArguments(cmd)
	c.register(cmd)
	return cmd
}

func (c *callRun) register(cmd *cobra.Command) {
	cmd.Flags().BoolVarP(&c.yes, "yes", "y", false, "answer questions of the policy with yes (never its denials)")
	cmd.Flags().BoolVar(&c.private, "private", false, "start a private daemon even when one is running")
	addRaw(cmd, &c.live.Raw)
	cmd.Flags().BoolVarP(&c.quiet, "quiet", "q", false, "do not print the decision and the end to standard error")
}

// callOperands rejects too many operands, which are usually an unquoted command.
func callOperands(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return errors.New("name a tool and what it works on: toold call bash 'ls -la'")
	}
	most := max(1, len(operandNames(args[0]))) // if the tool has no operands, build returns the error
	if n := len(args) - 1; n > most {
		return fmt.Errorf("%s takes at most %d, got %d operands; quote a command: toold call bash 'ls -la'", args[0], most, n)
	}
	return nil
}

type callRun struct {
	*global
	stdin        bool
	yes, private bool
	quiet        bool
	placed       bool   // the arguments were changed for below
	background   bool   // the call continues after its return
	id           string // id of the call, whose approval requests are answered
	live         console.Live
	asked        bool // the policy decided ask
	answers      bool // a person at the terminal, or --yes, answers approval requests
}

func (c *callRun) run(cmd *cobra.Command, args []string) error {
	cfg, err := c.load()
	if err != nil {
		return err
	}
	c.stdin, _ = cmd.Flags().GetBool("stdin")
	if args[0] == "bash" && !cmd.Flags().Changed("terminal") && c.exact(cmd) {
		_ = cmd.Flags().Set("terminal", "off") // it is a string
	}
	arguments, err := build(cmd, args[0], args[1:], c.In)
	if err != nil {
		return console.Usage(err)
	}
	arguments, c.placed = c.below.Arguments(arguments)
	c.background = console.InBackground(arguments)
	c.id = message.NewID("call")
	ctx, stop := console.Interruptible(cmd.Context(), syscall.SIGPIPE)
	defer stop()
	peer, err := c.connect(ctx, cfg)
	if err != nil {
		return err
	}
	defer peer.close()
	if err := c.answerQuestions(ctx, peer); err != nil {
		return err
	}
	c.live.Console, c.live.Record = c.Console, c.recordOf(peer)
	c.live.Failed = func() { peer.agent.Cancel(c.id, "its output cannot be printed") }
	c.live.Start(ctx)
	defer c.live.Finish()
	ret, err := c.make(ctx, peer, args[0], arguments)
	c.live.Close()
	if err != nil {
		return console.Exit(console.ExitNotRun, err)
	}
	if !c.JSON {
		c.live.Fill(ctx, "stdout", ret.StdoutBytes)
		c.live.Fill(ctx, "stderr", ret.StderrBytes)
		c.live.Finish()
	}
	finished := c.finish(ret)
	if problem := c.live.Problem(); problem != nil && ctx.Err() == nil {
		return console.Exit(console.ExitNotRun, problem)
	}
	return finished
}

// exact reports whether each byte counts of what comes here or goes from here as it comes; a terminal changes some.
func (c *callRun) exact(cmd *cobra.Command) bool {
	printed := !c.JSON && !cmd.Flags().Changed("background") && !executor.IsTerminal(c.Out)
	return printed || c.stdin && console.Piped(c.In)
}

// make sends the call and prints its events. When ctx ends, it cancels the call and awaits its return.
func (c *callRun) make(ctx context.Context, peer *peer, tool string, arguments json.RawMessage) (message.ToolReturn, error) {
	events := client.Events{
		Decision: func(d message.PolicyDecision) {
			c.asked = d.Action == "ask"
			c.say("%s · %s · %s", d.Action, d.Rule, d.Source)
		},
		Contact: func(d message.ConnectionDecision) {
			c.say("%s · contact %s:%d · %s · %s", d.Action, display.Short(d.Host), d.Port, d.Rule, d.By)
		},
		Queued: func(q message.ToolQueued) { c.say("queued · %d", q.Position) },
		Started: func(s message.ToolStarted) {
			c.say("sandbox %s", describe.WireSandbox(s.Sandbox))
			if c.stdin {
				// Ends with standard input, or with the process.
				go c.forwardInput(peer)
			}
		},
		Waiting: func(w message.WaitingForInput) {
			if w.Waiting {
				c.say("%s", describe.Waits(w, c.stdin))
			}
		},
		Output: c.live.Receive,
	}
	stopCancel := context.AfterFunc(ctx, func() { peer.agent.Cancel(c.id, "interrupted at the terminal") })
	defer stopCancel()
	return peer.agent.Call(context.WithoutCancel(ctx), client.Call{ID: c.id, Tool: tool, Arguments: arguments}, events)
}

func (c *callRun) say(format string, args ...any) {
	if !c.quiet {
		_ = console.Show(c.Err, fmt.Sprintf("toold: "+format+"\n", args...))
	}
}

func (c *callRun) forwardInput(peer *peer) {
	buf := make([]byte, 32<<10)
	for {
		n, err := c.In.Read(buf)
		if n > 0 && peer.agent.Feed(context.Background(), message.ToolInput{CallID: c.id, Data: buf[:n]}) != nil {
			return
		}
		if err != nil {
			peer.agent.Input(message.ToolInput{CallID: c.id, EOF: true})
			return
		}
	}
}

func (c *callRun) finish(ret message.ToolReturn) error {
	if c.JSON {
		if err := c.Emit(ret); err != nil {
			return console.Exit(console.ExitNotRun, err)
		}
	} else {
		c.printResult(ret)
	}
	if unused := ret.ToolName == "bash" && !c.stdin; unused && console.Unread(c.In) {
		c.say("standard input was not used; --stdin sends it to the command")
	}
	if code := console.ExitCode(ret); code != 0 {
		return console.Exit(code, nil)
	}
	return nil
}

func (c *callRun) printResult(ret message.ToolReturn) {
	switch {
	case ret.Background != nil:
		c.live.Print("stdout", []byte(ret.Background.CallID+"\n"))
		c.say("it runs on: toold output --follow %[1]s, toold cancel %[1]s", ret.Background.CallID)
		return
	case ret.ExitCode == nil && ret.Status == "success":
		c.live.Print("stdout", []byte(ret.Result))
	case ret.ExitCode == nil:
		_ = console.Show(c.Err, "toold: "+display.Visible(c.failure(ret))+"\n")
		return
	}
	if c.live.MidLine && executor.IsTerminal(c.Out) {
		fmt.Fprintln(c.Err)
	}
	if ret.ExitCode != nil {
		for _, d := range ret.Denials {
			c.say("%s", display.Visible(describe.Denial(d)))
		}
	}
	c.say("%s · %d ms", describe.Ended(ret), ret.DurationMS)
}

func (c *callRun) failure(ret message.ToolReturn) string {
	d := ret.Decision
	byPolicy := d != nil && d.By == "policy" && !ret.Cancelled
	if c.asked && !c.answers && byPolicy {
		return fmt.Sprintf("denied: rule %s asks a person (%s), and nobody could be asked here: run it at a terminal, say yes beforehand with --yes, or let a daemon serve while somebody runs `toold watch`", d.Rule, policy.WithoutAsking(d.Reason))
	}
	return strings.TrimPrefix(ret.Result, "Error: ")
}

func execCommand(g *global) *cobra.Command {
	c := &callRun{global: g}
	cmd := &cobra.Command{
		Use: "exec [flags] [--] COMMAND [ARGUMENT...]", SuggestFor: []string{"run"}, Short: "Run a command as a bash call, its words as they are",
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if flags := cmd.Flags(); !flags.Changed("stdin") && !flags.Changed("background") && console.Piped(c.In) {
				_ = flags.Set("stdin", "true") // it is a boolean
			}
			return c.run(cmd, []string{"bash", describe.Quote(args, true)})
		},
	}
	addArgumentsOf(cmd, "bash")
	c.register(cmd)
	cmd.Flags().SetInterspersed(false) // flags after the first operand belong to COMMAND
	return cmd
}
