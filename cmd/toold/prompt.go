package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/toold/toold/client"
	"github.com/toold/toold/executor"
	"github.com/toold/toold/internal/console"
	"github.com/toold/toold/internal/display"
	"github.com/toold/toold/message"
)

// answerQuestions connects an approver: the person at the terminal, or --yes.
func (c *callRun) answerQuestions(ctx context.Context, p *peer) error {
	if !c.yes {
		if !executor.IsTerminal(c.In) {
			return nil
		}
		// Standard error may be a file.
		tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
		if err != nil {
			return nil
		}
		p.tty = tty
	}
	var err error
	if p.person, err = p.dial(ctx, "approver"); err != nil {
		return console.Exit(callNotRun, err)
	}
	c.answers = true
	p.answering.Add(1)
	// Ends with the connection; peer.close waits.
	go func() {
		defer p.answering.Done()
		p.person.Approvals(ctx, client.ApprovalEvents{Requested: func(r message.ApprovalRequest) {
			if r.CallID == c.id && r.AgentID == "" { // other agents may use the same id
				c.answer(ctx, p, r)
			}
		}})
	}()
	return nil
}

func (c *callRun) answer(ctx context.Context, p *peer, r message.ApprovalRequest) {
	if c.yes {
		c.decide(ctx, p, client.Decision{ApprovalID: r.ID, Approve: true, Reason: "--yes was given beforehand", Beforehand: true})
		return
	}
	// Ctrl-C leaves the question open on its line.
	newline := context.AfterFunc(ctx, func() { fmt.Fprintln(p.tty) })
	defer newline()
	hello := p.agent.Hello()
	_ = console.Show(p.tty, fmt.Sprintf("\n%s asks: %s\n%s%s%s  in %s, %s\n", display.Short(r.Rule), display.Short(r.Reason),
		console.Asker(r.Asker, "  "), console.Question(r, "  "), console.Suggestions(r.Suggestions, "  "), hello.Workspace, console.WireSandbox(hello.Sandbox)))
	in := bufio.NewReader(p.tty)
	for open := true; open; {
		d := console.AskPerson(in, p.tty, r)
		d.ApprovalID = r.ID
		open = c.decide(ctx, p, d)
	}
}

// decide reports whether the call still waits.
func (c *callRun) decide(ctx context.Context, p *peer, d client.Decision) (open bool) {
	_, err := p.person.Decide(ctx, d)
	var refused *message.Error
	switch {
	case err == nil || ctx.Err() != nil:
		return false
	case errors.As(err, &refused) && refused.Type == message.InvalidArguments && p.tty != nil:
		fmt.Fprintln(p.tty, display.Short(refused.Message))
		return true
	}
	c.say("the answer did not arrive: %v", err)
	return false
}
