package letta

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/toold/toold/internal/strict"
	"github.com/toold/toold/message"
)

// Servers with Letta's older protocol stream messages over HTTP (letta-ai/letta: rest_api/routers/v1; letta-client
// 1.12). Pending calls are in the list of messages.

const lookAfter = time.Second

type follower struct {
	*bridge
	http  http.Client
	tools []fields // the daemon's tools as client_tools
	alone bool     // the server cannot run in the background
}

// sameServer follows redirects only to the same server, because another would receive the results of calls, and only
// with the same method, because another would lose them.
func sameServer(r *http.Request, via []*http.Request) error {
	first := via[0]
	isSame := r.URL.Scheme == first.URL.Scheme && r.URL.Host == first.URL.Host
	if len(via) > 3 || r.Method != first.Method || !isSame {
		return http.ErrUseLastResponse
	}
	return nil
}

type statusError struct {
	code int
	text string
}

func (e *statusError) Error() string {
	return fmt.Sprintf("the server answered %d %s: %s", e.code, http.StatusText(e.code), e.text)
}

func statusOf(err error) int {
	if status, is := errors.AsType[*statusError](err); is {
		return status.code
	}
	return 0
}

func isRejection(err error) bool {
	code := statusOf(err)
	return code/100 == 4 && code != http.StatusTooManyRequests
}

func isHTTP(address string) bool {
	return strings.HasPrefix(address, "http://") || strings.HasPrefix(address, "https://")
}

// request sends a request. A status other than 2xx is an error. The caller closes the body.
func (h *follower) request(ctx context.Context, method, path string, body any) (*http.Response, error) {
	var content io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		content = bytes.NewReader(text)
	}
	r, err := http.NewRequestWithContext(ctx, method, strings.TrimRight(h.URL, "/")+path, content)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errRefused, err)
	}
	r.Header.Set("Content-Type", "application/json")
	if h.Token != "" {
		r.Header.Set("Authorization", "Bearer "+h.Token)
	}
	resp, err := h.http.Do(r)
	if err != nil {
		return nil, fmt.Errorf("cannot reach the server at %s: %w", h.URL, err)
	}
	if resp.StatusCode/100 == 2 {
		return resp, nil
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 == 3 {
		return nil, fmt.Errorf("%w: %s answered %s to %s; give the address of the server itself by --url", errRefused, h.URL, resp.Status, resp.Header.Get("Location"))
	}
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 16<<10))
	if resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden {
		return nil, fmt.Errorf("%w: %s answered %s; give its token by --token-file", errRefused, h.URL, resp.Status)
	}
	return nil, &statusError{resp.StatusCode, strings.TrimSpace(string(text))}
}

func (h *follower) get(ctx context.Context, path string, into any) error {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	resp, err := h.request(ctx, http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxFrame))
	if err == nil {
		err = strict.Unmarshal(text, into)
	}
	if err != nil {
		return fmt.Errorf("cannot read the answer to %s: %w", path, err)
	}
	return nil
}

// messages returns the path of the conversation's messages. The default conversation is addressed by agent; the oldest
// servers have no other.
func (h *follower) messages() string {
	of := h.runtime()
	if of.Conversation == "default" {
		return "/v1/agents/" + url.PathEscape(of.Agent) + "/messages"
	}
	return "/v1/conversations/" + url.PathEscape(of.Conversation) + "/messages"
}

func (b *bridge) serveStream(ctx context.Context) (reached bool, err error) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.ResponseHeaderTimeout = silentWithin
	defer transport.CloseIdleConnections()
	h := &follower{bridge: b, http: http.Client{Transport: transport, CheckRedirect: sameServer}}
	if err := h.setUp(ctx); err != nil {
		return false, err
	}
	for {
		if err := h.turn(ctx); err != nil {
			return true, err
		}
		if err := wait(ctx, lookAfter); err != nil {
			return true, err
		}
	}
}

func (h *follower) setUp(ctx context.Context) error {
	h.dir.Store(h.Dir)
	err := h.findAgent(func() (list []named, err error) { return list, h.get(ctx, "/v1/agents/?limit=100", &list) })
	if err != nil {
		return err
	}
	agent, err := h.daemon.Get(ctx, h.Dir)
	if err != nil {
		return fmt.Errorf("%w: %w", errRefused, err)
	}
	h.mu.Lock()
	h.own = nil
	for _, t := range agent.Hello().Tools {
		h.own = append(h.own, t.Name)
		h.tools = append(h.tools, fields{"name": t.Name, "description": t.Description, "parameters": t.Parameters})
	}
	h.mu.Unlock()
	if _, err := h.latest(ctx); err != nil {
		if isRejection(err) {
			err = fmt.Errorf("%w: conversation %s of agent %s: %w", errRefused, h.conversation, h.runtime().Agent, err)
		}
		return err
	}
	h.Say(fmt.Sprintf("connected to the server at %s: agent %s, conversation %s", h.URL, h.runtime().Agent, h.conversation))
	return nil
}

func (h *follower) turn(ctx context.Context) error {
	calls, err := h.pending(ctx)
	if err == nil && len(calls) == 0 {
		calls, err = h.attach(ctx)
	}
	for err == nil && len(calls) > 0 {
		calls, err = h.answer(ctx, calls)
	}
	return err
}

// attach follows the active run. If that is impossible it returns nil: pending calls are in the list of messages.
func (h *follower) attach(ctx context.Context) ([]message.ToolCall, error) {
	r := &run{follower: h}
	resp, err := r.resume(ctx)
	switch {
	case isRejection(err):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return r.follow(ctx, resp)
}

// listed is a message of the conversation.
type listed struct {
	Kind    string `json:"message_type"`
	CallID  string `json:"tool_call_id"` // in a tool_return_message
	Returns []struct {
		CallID string `json:"tool_call_id"`
	} `json:"tool_returns"`
	Approvals []struct {
		CallID string `json:"tool_call_id"`
	} `json:"approvals"` // in an approval_response_message
	frame json.RawMessage
}

func (h *follower) latest(ctx context.Context) ([]listed, error) {
	var frames []json.RawMessage
	if err := h.get(ctx, h.messages()+"?order=desc&limit=50", &frames); err != nil {
		return nil, err
	}
	list := make([]listed, len(frames))
	for i, f := range frames {
		if err := strict.Unmarshal(f, &list[i]); err != nil {
			return nil, fmt.Errorf("cannot read a message of %s: %w", h.messages(), err)
		}
		list[i].frame = f
	}
	return list, nil
}

func (h *follower) pending(ctx context.Context) ([]message.ToolCall, error) {
	list, err := h.latest(ctx)
	if err != nil {
		return nil, err
	}
	var waiting gathered
	for _, l := range list {
		switch l.Kind {
		case "approval_request_message":
			waiting.add(l.frame, new(message.Decoder))
		case "approval_response_message", "tool_return_message", "user_message":
			return waiting.calls, nil
		}
	}
	return waiting.calls, nil
}

func (h *follower) settled(ctx context.Context, wanted map[string]bool) bool {
	list, err := h.latest(ctx)
	if err != nil {
		return false
	}
	for _, l := range list {
		if l.Kind == "tool_return_message" && wanted[l.CallID] {
			return true
		}
		for _, a := range append(l.Returns, l.Approvals...) {
			if wanted[a.CallID] {
				return true
			}
		}
	}
	return false
}
