package console

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/toold/toold/client"
	"github.com/toold/toold/internal/describe"
	"github.com/toold/toold/internal/display"
	"github.com/toold/toold/message"
)

var watchTopics = []string{"request", "decision", "question", "answer", "waiting", "output", "return"}

// watcher shows calls and reads answers. Each answer names its question, so that earlier input decides nothing.
type watcher struct {
	Console
	dial         func(context.Context) (*client.Client, error)
	subscription message.Subscribe // After is the last event seen
	agent        string            // its id or the name of its token; "" = all

	mu          sync.Mutex
	client      *client.Client // the current connection
	calls       callScreen
	pending     map[int]message.ApprovalRequest // by number
	unconfirmed map[string]bool                 // ids of pending requests of the last connection that this one has not listed
	numbers     map[string]int                  // numbers of the requests that were shown, by id
	resolvedIDs map[string]bool                 // ids of answered requests
}

// Watch shows what calls do and reads answers to their questions until ctx ends. dial connects an approver. The AgentID
// of the subscription may also be the name of a token.
func (c Console) Watch(ctx context.Context, dial func(context.Context) (*client.Client, error), subscription message.Subscribe) error {
	conn, err := dial(ctx)
	if err != nil {
		return err
	}
	agent := subscription.AgentID // which may also be the name of a token
	subscription.Topics, subscription.AgentID = watchTopics, ""
	w := &watcher{Console: c, dial: dial, subscription: subscription, agent: agent, client: conn, pending: map[int]message.ApprovalRequest{}, numbers: map[string]int{}, resolvedIDs: map[string]bool{}}
	// Ends at the end of standard input, or with the program.
	go w.readAnswers(ctx)
	for conn != nil {
		err := w.follow(ctx, conn)
		conn.Close()
		refused, isRefusal := errors.AsType[*message.Error](err)
		switch {
		case ctx.Err() != nil:
			return nil
		case isRefusal && w.subscription.After == nil:
			return errors.New(display.Short(refused.Message))
		case isRefusal:
			w.subscription.After = nil // it is another journal
		default:
			fmt.Fprintln(c.Err, "toold: lost the connection to the daemon; connecting again until Ctrl-C")
		}
		conn = w.redial(ctx)
	}
	return nil
}

const redialEvery = 500 * time.Millisecond

// redial tries to connect until it succeeds. It returns nil when ctx ends.
func (w *watcher) redial(ctx context.Context) *client.Client {
	for ctx.Err() == nil {
		if c, err := w.dial(ctx); err == nil {
			w.mu.Lock()
			w.client = c
			w.mu.Unlock()
			return c
		}
		select {
		case <-ctx.Done():
		case <-time.After(redialEvery):
		}
	}
	return nil
}

// follow shows the events and the pending requests of a connection until that ends.
func (w *watcher) follow(ctx context.Context, c *client.Client) error {
	running, _ := c.ListCalls(ctx, "", false) // without the list, such calls are shown by id
	w.mu.Lock()
	w.calls.list(running)
	w.unconfirmed = map[string]bool{}
	for _, r := range w.pending {
		w.unconfirmed[r.ID] = true
	}
	w.mu.Unlock()
	var listing sync.WaitGroup
	defer listing.Wait()
	return c.Subscribe(ctx, w.subscription, client.SubscriptionEvents{
		Subscribed: func(after int64) {
			if w.subscription.After == nil {
				fmt.Fprintln(w.Err, "toold: waiting for calls in all workspaces; answer questions with: yes NUMBER, or: no NUMBER WHY; help lists more; Ctrl-C ends")
			}
			w.subscription.After = &after
			// Ends with its answer or the connection.
			listing.Go(func() { w.listPending(ctx, c) })
		},
		Event: w.handleEvent,
		Gap: func(g message.SubscriptionGap) {
			fmt.Fprintf(w.Err, "toold: %d events came too fast to be shown\n", g.Skipped)
		},
	})
}

func (w *watcher) listPending(ctx context.Context, c *client.Client) {
	list, err := c.ListApprovals(ctx)
	if err != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reconcile(list)
}

// reconcile shows the listed requests and closes the unconfirmed ones that are not listed. The caller holds mu.
func (w *watcher) reconcile(list []message.ApprovalRequest) {
	for _, r := range list {
		conversation := w.subscription.ConversationID
		ofConversation := conversation == "" || conversation == r.ConversationID
		if ofConversation && w.isOf(r.Client, r.AgentID) {
			w.showRequest(r)
		}
	}
	for id := range w.unconfirmed {
		if !w.resolvedIDs[id] {
			w.closeRequest(message.ApprovalResolved{MessageType: "approval_resolved", ID: id, Reason: "it waits no longer"})
		}
	}
}

// isOf reports whether what a client sent for an agent is to be shown.
func (w *watcher) isOf(client, agent string) bool {
	return w.agent == "" || w.agent == agent || w.agent == client
}

// showRequest shows a question once while it is pending, unless it differs. The caller holds mu.
func (w *watcher) showRequest(r message.ApprovalRequest) {
	delete(w.unconfirmed, r.ID)
	number, shown := w.numbers[r.ID]
	known := w.pending[number]
	if w.resolvedIDs[r.ID] || known.ID != "" && describe.FormQuestion(known) == describe.FormQuestion(r) {
		return
	}
	if !shown {
		number = len(w.numbers) + 1
		w.numbers[r.ID] = number
	}
	w.pending[number], w.calls.paused = r, true
	w.Print(r, fmt.Sprintf("[%d] %s  %s", number, r.ID, describe.Asked(r)))
}

// showResolution shows the answer to a question once. The caller holds mu.
func (w *watcher) showResolution(r message.ApprovalResolved) {
	if !w.resolvedIDs[r.ID] {
		w.resolvedIDs[r.ID] = true
		w.closeRequest(r)
	}
}

// closeRequest shows why a question that was shown can no longer be answered. The caller holds mu.
func (w *watcher) closeRequest(r message.ApprovalResolved) {
	number, shown := w.numbers[r.ID]
	if !shown {
		return
	}
	delete(w.pending, number)
	w.Print(r, fmt.Sprintf("[%d] %s  %s\n", number, r.ID, display.Short(describe.Resolved(r))))
	if w.calls.paused = len(w.pending) > 0; !w.calls.paused {
		_ = w.Show(w.calls.release())
	}
}

const maxTypedLine = 64 << 10

// readAnswers handles each line of standard input as an answer.
func (w *watcher) readAnswers(ctx context.Context) {
	in := bufio.NewReaderSize(w.In, maxTypedLine)
	for {
		line, more, err := in.ReadLine()
		long := more
		for more && err == nil {
			_, more, err = in.ReadLine()
		}
		switch {
		case long:
			fmt.Fprintf(w.Err, "toold: a line of more than %d bytes is no answer; type a shorter one\n", maxTypedLine)
		case err == nil && len(bytes.TrimSpace(line)) > 0:
			w.handleAnswer(ctx, string(line))
		}
		if err != nil && !errors.Is(err, io.EOF) {
			fmt.Fprintf(w.Err, "toold: cannot read standard input, so this takes no more answers: %v\n", err)
		}
		if err != nil {
			return
		}
	}
}

const watchHelp = `A call that waits for a person has a number, here 1. Answers:
  yes 1
  yes 1 it is fine         (the words go to the agent)
  yes 1 --network full     (widens its sandbox, as far as approval.widen lets it)
  no 1 use make instead    (the words go to the agent)
  conversation 1           (yes, and to the same in this conversation)
  command 1, prefix 1      (yes, and a rule for it in your policy)
  rule 1 npm run *         (yes, and a rule of your own)
  edit 1 npm test          (runs this instead, once)
`

func (w *watcher) handleAnswer(ctx context.Context, line string) {
	if word := strings.TrimSpace(line); word == "help" || word == "?" {
		_ = Show(w.Err, watchHelp)
		return
	}
	d, err := w.parseAnswer(line)
	if err == nil {
		err = w.decide(ctx, d)
	}
	if refused, ok := errors.AsType[*message.Error](err); ok {
		err = errors.New(refused.Message)
	} else if ctx.Err() != nil {
		return
	}
	if err != nil {
		_ = Show(w.Err, "toold: "+display.Short(err.Error())+"\n")
	}
}

// decide sends a decision and shows the result, because a new connection may not receive the event of it.
func (w *watcher) decide(ctx context.Context, d client.Decision) error {
	w.mu.Lock()
	c := w.client
	w.mu.Unlock()
	resolved, err := c.Decide(ctx, d)
	if err != nil {
		return err
	}
	resolved.RequestID = ""
	w.mu.Lock()
	defer w.mu.Unlock()
	w.showResolution(resolved)
	return nil
}

// parseAnswer parses a line. Only a clear yes that names an open question approves, since another question may appear
// while a person types.
func (w *watcher) parseAnswer(line string) (d client.Decision, err error) {
	word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
	which, rest, _ := strings.Cut(strings.TrimSpace(rest), " ")
	rest = strings.TrimSpace(rest)
	yes, plain := yesOrNo(word)
	if !plain && !answersMore(word) {
		return d, fmt.Errorf("%q is no answer; type help for those that are", word)
	}
	r, err := w.findRequest(word, which)
	if err != nil {
		return d, err
	}
	if d, ok := parseRemember(word, rest, r); ok {
		d.ApprovalID = r.ID
		return d, nil
	}
	if !plain {
		return d, fmt.Errorf("question %s does not take %q; say yes %[1]s, or no %[1]s and why", which, line)
	}
	d = client.Decision{ApprovalID: r.ID, Approve: yes, Reason: rest}
	if yes && strings.HasPrefix(rest, "--") {
		d.Widen, err = parseWidening(rest)
		d.Reason = ""
	}
	return d, err
}

// findRequest returns the open question with a number or id. The error lists the open ones.
func (w *watcher) findRequest(word, which string) (r message.ApprovalRequest, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var waiting []string
	for _, number := range slices.Sorted(maps.Keys(w.pending)) {
		text := strconv.Itoa(number)
		if which == text || which == w.pending[number].ID {
			return w.pending[number], nil
		}
		waiting = append(waiting, text)
	}
	open := "no question waits"
	if len(waiting) > 0 {
		open = "questions that wait: " + strings.Join(waiting, ", ")
	}
	for id, number := range w.numbers {
		if which == strconv.Itoa(number) || which == id {
			return r, fmt.Errorf("question %d waits no longer; %s", number, open)
		}
	}
	switch {
	case which != "":
		return r, fmt.Errorf("no question has the number %q; %s", which, open)
	case len(waiting) == 0:
		return r, errors.New(open)
	case len(waiting) == 1:
		return r, fmt.Errorf("which question? Say %s %s", word, waiting[0])
	}
	return r, fmt.Errorf("which question? Say %s NUMBER; %s", word, open)
}
