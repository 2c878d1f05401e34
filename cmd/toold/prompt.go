package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"

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
		approve, reason = askPerson(p.tty, r)
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

// askPerson shows a call and reads y or n. Everything but a clear yes is a no.
func askPerson(tty io.ReadWriter, r message.ApprovalRequest) (approve bool, reason string) {
	showQuestion(tty, r)
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

func showQuestion(w io.Writer, r message.ApprovalRequest) {
	fmt.Fprintf(w, "\n%s asks: %s\n", r.Rule, r.Reason)
	fmt.Fprintf(w, "  %s\n", strings.ReplaceAll(visible(r.Preview.Text), "\n", "\n  "))
	if r.Preview.Diff != "" {
		fmt.Fprintf(w, "%s\n", visible(r.Preview.Diff))
	}
	for _, e := range r.Effects {
		fmt.Fprintf(w, "  - %s\n", visible(e.Text))
	}
	fmt.Fprintf(w, "Run it? [y]es once, [n]o; words after it go to the agent as the reason: ")
}

// visible makes characters seen that could paint over what is shown, or hide in
// it: the text was written by an agent.
func visible(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '\n' || r == '\t' || unicode.IsPrint(r):
			b.WriteRune(r)
		default:
			fmt.Fprintf(&b, "\\u{%x}", r)
		}
	}
	return b.String()
}
