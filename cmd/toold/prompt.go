package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/toold/toold/client"
	"github.com/toold/toold/executor"
	"github.com/toold/toold/message"
)

// answerQuestions connects as an approver when there is somebody to answer: the
// person at the terminal, or --yes.
func (c *callRun) answerQuestions(ctx context.Context, p *peer) error {
	if !c.yes {
		// The terminal itself, not standard error: that may go to a file.
		tty, err := openTerminal(c.std.in)
		if err != nil {
			return nil // nobody sits here; the policy's question finds no approver
		}
		p.tty = tty
	}
	secret, err := p.secret("approver")
	if err != nil {
		return &exitError{callNotRun, err}
	}
	p.person, err = client.Dial(ctx, client.Options{URL: p.url, Token: secret, Name: "toold call", Version: version})
	if err != nil {
		return &exitError{callNotRun, err}
	}
	c.answers = true
	p.answering.Add(1)
	// Ends when the connection is closed; peer.close waits for it.
	go func() {
		defer p.answering.Done()
		p.person.Approvals(ctx, client.ApprovalEvents{Requested: func(r message.ApprovalRequest) {
			if r.CallID == c.id {
				c.answer(ctx, p, r)
			}
		}})
	}()
	return nil
}

// answer decides one question: with yes when that was said beforehand, else by
// asking the person.
func (c *callRun) answer(ctx context.Context, p *peer, r message.ApprovalRequest) {
	approve, reason := true, "--yes"
	if !c.yes {
		// Ctrl-C leaves the question open on its line.
		newline := context.AfterFunc(ctx, func() { fmt.Fprintln(p.tty) })
		defer newline()
		hello := p.agent.Hello()
		approve, reason = askPerson(p.tty, r, hello.Workspace+", "+describeWire(hello.Sandbox))
	}
	d := client.Decision{ApprovalID: r.ID, Approve: approve, Reason: reason}
	if _, err := p.person.Decide(ctx, d); err != nil && ctx.Err() == nil {
		c.say("the answer did not arrive: %v", err)
	}
}

// openTerminal opens the terminal at which a person sits. A program whose input
// is not a terminal was not started by one who waits for questions.
func openTerminal(in *os.File) (*os.File, error) {
	if !executor.IsTerminal(in) {
		return nil, errors.New("standard input is no terminal")
	}
	return os.OpenFile("/dev/tty", os.O_RDWR, 0)
}

// askPerson shows a call and where it would run, and reads y or n. Everything
// but a clear yes is a no.
func askPerson(tty io.ReadWriter, r message.ApprovalRequest, where string) (approve bool, reason string) {
	fmt.Fprintf(tty, "\n%s asks: %s\n%s  in %s\n", oneLine(r.Rule), oneLine(r.Reason), question(r, "  "), where)
	fmt.Fprint(tty, "Run it? [y]es once, [n]o; words after it go to the agent as the reason: ")
	line, err := bufio.NewReader(tty).ReadString('\n')
	if err != nil {
		return false, "the terminal was closed"
	}
	word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
	switch strings.ToLower(word) {
	case "y", "yes", "a", "allow":
		return true, strings.TrimSpace(rest)
	}
	return false, strings.TrimSpace(rest)
}
