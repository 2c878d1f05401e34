package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/toold/toold/client"
	"github.com/toold/toold/message"
)

func watchCommand(g *global) *cobra.Command {
	return &cobra.Command{
		Use: "watch", Short: "Show the calls that wait for a person as they come, and answer them", Args: cobra.NoArgs,
		Long: "Shows each call that waits for a person, with a number, and what becomes of it. A line\n" +
			"typed here answers one:\n\n" +
			"  yes 1\n" +
			"  yes 1 --network full     (widens its sandbox, as far as approval.widen lets it)\n" +
			"  no 1 use make instead    (the words go to the agent)\n\n" +
			"While this runs an approver is connected.",
		RunE: func(cmd *cobra.Command, _ []string) error { return g.watch(cmd.Context()) },
	}
}

// watcher shows questions and takes their answers. Each answer names its question, so
// that nothing typed before one came, or meant for another, decides it.
type watcher struct {
	*global
	client *client.Client

	mu   sync.Mutex
	last int
	open map[int]string // ids of approvals by their numbers
}

// watch goes on until interrupted, or until the daemon is gone.
func (g *global) watch(ctx context.Context) error {
	ctx, interrupted := interruptible(ctx)
	defer interrupted.stop()
	c, err := g.dial(ctx, "approver")
	if err != nil {
		return err
	}
	defer c.Close()
	fmt.Fprintf(g.std.err, "toold: waiting for questions about calls in %s; answer with: yes NUMBER, or: no NUMBER WHY; Ctrl-C ends\n", c.Hello().Workspace)
	w := &watcher{global: g, client: c, open: map[int]string{}}
	// Ends at the end of standard input, or with the program.
	go w.answers(ctx)
	err = c.Approvals(ctx, client.ApprovalEvents{Requested: w.requested, Resolved: w.resolved})
	if ctx.Err() != nil {
		return nil
	}
	return &exitError{exitUnreachable, fmt.Errorf("the daemon is gone: %w", err)}
}

func (w *watcher) requested(r message.ApprovalRequest) {
	w.mu.Lock()
	w.last++
	number := w.last
	w.open[number] = r.ID
	w.mu.Unlock()
	w.print(r, fmt.Sprintf("[%d] %s  %s", number, r.ID, asked(r)))
}

func (w *watcher) resolved(r message.ApprovalResolved) {
	name := r.ID
	w.mu.Lock()
	for number, id := range w.open {
		if id == r.ID {
			name = fmt.Sprintf("[%d] %s", number, r.ID)
			delete(w.open, number)
		}
	}
	w.mu.Unlock()
	w.print(r, fmt.Sprintf("%s  %s\n", name, oneLine(resolvedText(r))))
}

// answers acts on the lines that are typed.
func (w *watcher) answers(ctx context.Context) {
	lines := bufio.NewScanner(w.std.in)
	for lines.Scan() {
		if strings.TrimSpace(lines.Text()) == "" {
			continue
		}
		d, err := w.answer(lines.Text())
		if err == nil {
			_, err = w.client.Decide(ctx, d)
		}
		var refused *message.Error
		switch {
		case errors.As(err, &refused):
			fmt.Fprintln(w.std.err, "toold:", oneLine(refused.Message))
		case err != nil && ctx.Err() == nil:
			fmt.Fprintln(w.std.err, "toold:", oneLine(err.Error()))
		}
	}
}

// answer reads a line. Everything but a clear yes to a question that is open decides
// nothing, or is a no.
func (w *watcher) answer(line string) (d client.Decision, err error) {
	word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
	which, rest, _ := strings.Cut(strings.TrimSpace(rest), " ")
	id, waiting := w.named(which)
	if id == "" {
		return d, fmt.Errorf("no question has the number %q; those that wait: %v", which, waiting)
	}
	d = client.Decision{ApprovalID: id, Reason: strings.TrimSpace(rest)}
	switch strings.ToLower(word) {
	case "y", "yes":
		d.Approve = true
	case "n", "no":
		return d, nil
	default:
		return d, fmt.Errorf("say yes %s, or no %[1]s and why", which)
	}
	if strings.HasPrefix(d.Reason, "--") {
		d.Widen, err = parseWidening(d.Reason)
		d.Reason = ""
	}
	return d, err
}

// named is the approval with a number, or with that id, and the numbers of all.
func (w *watcher) named(which string) (id string, waiting []int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for number, open := range w.open {
		if which == strconv.Itoa(number) || which == open {
			id = open
		}
	}
	return id, slices.Sorted(maps.Keys(w.open))
}
