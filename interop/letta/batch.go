package letta

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/toold/toold/client"
	"github.com/toold/toold/internal/lazyregexp"
	"github.com/toold/toold/message"
)

// batch has answers by call id. The server accepts those of a step only together.
type batch map[string]fields

// answer runs the pending calls, sends the results, and follows the run. It returns the calls that are pending then.
func (h *follower) answer(ctx context.Context, calls []message.ToolCall) ([]message.ToolCall, error) {
	all, wanted := h.perform(ctx, calls)
	answers := all
	for pause := firstPause; wanted; pause = min(2*pause, mostPause) {
		resp, err := h.post(ctx, answers)
		if err == nil {
			return (&run{follower: h}).follow(ctx, resp)
		}
		switch again := repair(err, answers, all); {
		case again != nil:
			answers = again
		case strings.Contains(err.Error(), "No tool call is currently awaiting approval"):
			h.Say(fmt.Sprintf("another client answered %s before toold", strings.Join(answers.ids(), ", ")))
			return nil, nil
		case !temporary(err):
			return nil, err
		}
		h.Say(fmt.Sprintf("the results could not be sent (%v); trying again", err))
		if err := wait(ctx, pause); err != nil {
			return nil, err
		}
	}
	return nil, ctx.Err()
}

// perform lets the daemon run calls of its tools and decide on calls of the server's. wanted is false if the calls
// already have answers.
func (h *follower) perform(ctx context.Context, calls []message.ToolCall) (answers batch, wanted bool) {
	ids := make(map[string]bool)
	for _, c := range calls {
		ids[c.ID] = true
	}
	if h.settled(ctx, ids) {
		return nil, false
	}
	doing, unwanted := context.WithCancel(ctx)
	defer unwanted()
	var mu sync.Mutex
	var all sync.WaitGroup
	answers = make(batch)
	for i, c := range calls {
		all.Go(func() {
			a := h.answerTo(doing, c, i >= maxCalls)
			mu.Lock()
			defer mu.Unlock()
			answers[c.ID] = a
		})
	}
	done := make(chan struct{})
	// Ends with the calls; perform waits.
	go func() { all.Wait(); close(done) }()
	look := time.Tick(lookAfter)
	for {
		select {
		case <-done:
			return answers, doing.Err() == nil
		case <-look:
			if doing.Err() == nil && h.settled(ctx, ids) {
				unwanted()
			}
		}
	}
}

func (h *follower) answerTo(ctx context.Context, c message.ToolCall, tooMany bool) fields {
	switch {
	case tooMany:
		return returned(c.ID, outcome{text: crowded})
	case c.Invalid != "":
		return returned(c.ID, outcome{text: "Error: " + c.Invalid + "; nothing ran"})
	}
	if h.isOwn(c.Name) {
		// A string preserves the arguments byte for byte.
		o, _ := h.bridge.perform(ctx, client.Call{ID: c.ID, Tool: c.Name, Arguments: string(c.Arguments)}, nil)
		if o.denied {
			return decided(c.ID, o)
		}
		return returned(c.ID, o)
	}
	var input map[string]json.RawMessage
	if json.Unmarshal(c.Arguments, &input) != nil || input == nil {
		return decided(c.ID, outcome{text: "its arguments are no JSON object"})
	}
	return decided(c.ID, h.judge(ctx, c.ID, c.Name, c.Arguments))
}

// returned returns a result. It is text, because the server takes a list in tool_return for a success.
func returned(id string, o outcome) fields {
	status := "error"
	if o.ok {
		status = "success"
	}
	return fields{"type": "tool", "tool_call_id": id, "tool_return": shortened(o.text), "status": status}
}

// decided returns a decision that lets the server run a call if o is ok.
func decided(id string, o outcome) fields {
	if o.ok {
		return fields{"type": "approval", "tool_call_id": id, "approve": true}
	}
	why := cmp.Or(strings.TrimPrefix(o.text, "Error: "), "toold denied it")
	return fields{"type": "approval", "tool_call_id": id, "approve": false, "reason": shortened(why)}
}

func (a batch) ids() []string { return slices.Sorted(maps.Keys(a)) }

// post sends the answers. The server recognizes a repetition by its otid.
func (h *follower) post(ctx context.Context, a batch) (*http.Response, error) {
	var list []fields
	sum := sha256.New()
	for _, id := range a.ids() {
		list = append(list, a[id])
		fmt.Fprintf(sum, "%q\n", id)
	}
	of := h.runtime()
	fmt.Fprintf(sum, "%q %q\n", of.Agent, of.Conversation)
	body := fields{
		"messages":  []fields{{"type": "approval", "approvals": list, "otid": "toold-" + hex.EncodeToString(sum.Sum(nil))[:32]}},
		"streaming": true, "include_pings": true, "background": !h.alone, "client_tools": h.tools,
	}
	resp, err := h.request(ctx, http.MethodPost, h.messages(), body)
	if statusOf(err) == http.StatusServiceUnavailable && !h.alone && strings.Contains(strings.ToLower(err.Error()), "background") {
		h.alone = true
		return h.post(ctx, a)
	}
	return resp, err
}

var expected = lazyregexp.New(`Expected '?(\[[^]]*\])`)

var quoted = lazyregexp.New(`['"]([^'"]+)['"]`)

// repair returns the answers that the server expects according to err, or nil if these are no others.
func repair(err error, a, all batch) batch {
	if statusOf(err) != http.StatusBadRequest || !strings.Contains(err.Error(), "Invalid tool call IDs") {
		return nil
	}
	found := expected().FindStringSubmatch(strings.ReplaceAll(err.Error(), `\"`, `"`))
	if found == nil {
		return nil
	}
	again := make(batch)
	for _, m := range quoted().FindAllStringSubmatch(found[1], -1) {
		again[m[1]] = all[m[1]]
		if again[m[1]] == nil {
			again[m[1]] = returned(m[1], outcome{text: "Error: this call did not reach toold; nothing ran. Make it again"})
		}
	}
	if len(again) == 0 || slices.Equal(again.ids(), a.ids()) {
		return nil
	}
	return again
}

// temporary reports whether a retry may succeed: the server did not answer, is busy with another run, or failed.
func temporary(err error) bool {
	code := statusOf(err)
	switch {
	case errors.Is(err, errRefused):
		return false
	case code == http.StatusConflict:
		return !strings.Contains(err.Error(), "PENDING_APPROVAL")
	case code/100 == 4:
		return code == http.StatusTooManyRequests || code == http.StatusRequestTimeout
	}
	return true // code 0 means no answer
}
