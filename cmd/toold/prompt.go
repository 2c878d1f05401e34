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

// answerQuestions connects an approver: the person at the terminal, or --yes.
func (c *callRun) answerQuestions(ctx context.Context, p *peer) error {
	if !c.yes {
		if !executor.IsTerminal(c.std.in) {
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
	if p.person, err = p.dial(ctx, "approver", client.Options{Silent: true}); err != nil {
		return &exitError{callNotRun, err}
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
	_ = show(p.tty, fmt.Sprintf("\n%s asks: %s\n%s%s%s  in %s, %s\n", oneLine(r.Rule), oneLine(r.Reason),
		asker(r.Asker, "  "), question(r, "  "), suggestionsText(r.Suggestions, "  "), hello.Workspace, describeWire(hello.Sandbox)))
	in := bufio.NewReader(p.tty)
	for open := true; open; {
		d := askPerson(in, p.tty, r)
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
		fmt.Fprintln(p.tty, oneLine(refused.Message))
		return true
	}
	c.say("the answer did not arrive: %v", err)
	return false
}

// askPerson reads an answer until it is clear. The end of the input is a no.
func askPerson(in *bufio.Reader, out io.Writer, r message.ApprovalRequest) client.Decision {
	flags := wideningFlags(r.MayWiden)
	wider := ""
	if len(flags) > 0 {
		wider = "[w]iden its sandbox for this once, "
	}
	for {
		fmt.Fprintf(out, "Run it? [y]es once, %s%s[n]o; words after it go to the agent as the reason: ", choices(r), wider)
		line, err := in.ReadString('\n')
		if err != nil {
			return client.Decision{Reason: "the terminal was closed"}
		}
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		if d, ok := remembering(word, rest, r); ok {
			return d
		}
		d := client.Decision{Reason: strings.TrimSpace(rest)}
		yes, clear := yesOrNo(word)
		switch word = strings.ToLower(word); {
		case clear:
			d.Approve = yes
			return d
		case len(flags) == 0 || word != "w" && word != "widen":
			fmt.Fprintf(out, "%q is neither yes nor no.\n", oneLine(word))
			continue
		}
		if d.Widen, d.Approve = askWidening(in, out, flags); d.Approve {
			return d
		}
	}
}

func yesOrNo(word string) (yes, clear bool) {
	switch strings.ToLower(word) {
	case "y", "yes", "a", "allow":
		return true, true
	case "n", "no", "d", "deny":
		return false, true
	}
	return false, false
}

// askWidening reads an escalation, which needs a yes of its own.
func askWidening(in *bufio.Reader, out io.Writer, flags []string) (w message.Widening, sure bool) {
	for {
		fmt.Fprintf(out, "  It may be given %s.\n  Give it (nothing goes back): ", strings.Join(flags, ", "))
		line, err := in.ReadString('\n')
		if err != nil || strings.TrimSpace(line) == "" {
			return message.Widening{}, false
		}
		if w, err = parseWidening(line); err == nil {
			break
		}
		fmt.Fprintf(out, "  %s\n", oneLine(err.Error()))
	}
	for {
		fmt.Fprintf(out, "  Then, for this one call:\n%s  Sure? [y]es, [n]o: ", bullets(w.Lines()))
		line, err := in.ReadString('\n')
		yes, clear := yesOrNo(strings.TrimSpace(line))
		if clear && yes {
			return w, true
		}
		if clear || err != nil {
			return message.Widening{}, false
		}
	}
}
