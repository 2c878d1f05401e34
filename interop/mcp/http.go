package mcp

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toold/toold/client"
	"github.com/toold/toold/message"
)

// HTTPOptions configures a Handler.
type HTTPOptions struct {
	// Dial connects to the daemon with the token of the caller.
	Dial func(ctx context.Context, p Caller) (*client.Client, error)
	// JoinFor makes asked receive the approval requests that mine accepts, until leave is called. Pages take answers.
	JoinFor joinFor
	MaxBody int64         // bytes of a request
	Linger  time.Duration // how long shared state is kept after the last request
	Options               // Dial is ignored
}

type joinFor = func(mine func(message.ApprovalRequest) bool, asked func(message.ApprovalRequest)) (leave func())

// Caller is the client that a token identifies.
type Caller struct {
	Token   string // name of the token
	Secret  string
	Decides bool   // the token may decide on calls, so forms can be used
	Dir     string // selects the workspace; see client.Options
}

const sessionIdle = 2 * time.Hour

// A Handler serves clients over streamable HTTP. In protocol versions up to 2025-11-25 clients have sessions. From
// 2026-07-28 on requests are independent, and those with one token share a server. A lost request cancels its call.
type Handler struct {
	options  HTTPOptions
	entry    http.Handler
	sessions http.Handler
	alone    http.Handler

	mu      sync.Mutex
	closed  bool
	lasting map[string]*server // by session id
	common  map[common]*server
	servers map[*server]struct{}
	under   sync.WaitGroup // requests and servers

	ending sync.Once
	ended  chan struct{}
}

type common struct{ token, dir string }

// NewHandler returns a Handler. The caller must call Close.
func NewHandler(o HTTPOptions) *Handler {
	h := &Handler{
		options: o, lasting: map[string]*server{}, common: map[common]*server{}, servers: map[*server]struct{}{}, ended: make(chan struct{}),
	}
	// The caller has already checked Host and Origin.
	settings := mcp.StreamableHTTPOptions{DisableLocalhostProtection: true, MaxRequestBodyBytes: o.MaxBody, SessionTimeout: sessionIdle}
	h.sessions = mcp.NewStreamableHTTPHandler(serverOf, &settings)
	settings.Stateless = true
	h.alone = mcp.NewStreamableHTTPHandler(serverOf, &settings)
	h.entry = auth.RequireBearerToken(identify, &auth.RequireBearerTokenOptions{AllowMissingExpiration: true})(http.HandlerFunc(h.route))
	return h
}

type (
	callerKey struct{}
	serverKey struct{}
)

func serverOf(r *http.Request) *mcp.Server {
	if s, ok := r.Context().Value(serverKey{}).(*server); ok {
		return s.mcp
	}
	return nil
}

// identify returns the name of the verified token as user, so that other tokens cannot use the session.
func identify(ctx context.Context, _ string, _ *http.Request) (*auth.TokenInfo, error) {
	p, ok := ctx.Value(callerKey{}).(Caller)
	if !ok {
		return nil, auth.ErrInvalidToken
	}
	return &auth.TokenInfo{UserID: p.Token, Extra: map[string]any{goneKey: ctx.Done()}}, nil
}

const goneKey = "gone"

// lost returns a channel that is closed when the HTTP request ends, or nil over stdio.
func lost(req mcp.Request) <-chan struct{} {
	extra := req.GetExtra()
	if extra == nil || extra.TokenInfo == nil {
		return nil
	}
	gone, _ := extra.TokenInfo.Extra[goneKey].(<-chan struct{})
	return gone
}

// Serve answers a request of the client that p identifies. After Close it answers 503.
func (h *Handler) Serve(w http.ResponseWriter, r *http.Request, p Caller) {
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		unavailable(w, errors.New("it is stopping"))
		return
	}
	h.under.Add(1)
	h.mu.Unlock()
	defer h.under.Done()
	h.entry.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callerKey{}, p)))
}

func (h *Handler) route(w http.ResponseWriter, r *http.Request) {
	p, _ := r.Context().Value(callerKey{}).(Caller)
	id := r.Header.Get("Mcp-Session-Id")
	switch {
	case r.Header.Get("Mcp-Protocol-Version") >= requestsAlone:
		h.serveAlone(w, r, p)
	case id == "" && r.Method == http.MethodPost:
		h.serveFirst(w, r, p)
	default:
		h.look(id, p, r.Method)
		h.sessions.ServeHTTP(w, r)
	}
}

func unavailable(w http.ResponseWriter, err error) {
	http.Error(w, "toold cannot serve this client: "+err.Error(), http.StatusServiceUnavailable)
}

func (h *Handler) open(ctx context.Context, p Caller) (*server, error) {
	o := h.options.Options
	o.Dial = func(ctx context.Context, role string) (*client.Client, error) {
		if role != "agent" && !p.Decides {
			return nil, errors.New("the token may not decide on calls")
		}
		return h.options.Dial(ctx, p)
	}
	s, err := newServer(ctx, o)
	if err != nil {
		return nil, err
	}
	s.caller, s.joinFor = p, h.options.JoinFor
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		s.link.Close()
		return nil, errors.New("it is stopping")
	}
	h.servers[s] = struct{}{}
	return s, nil
}

func (h *Handler) serveFirst(w http.ResponseWriter, r *http.Request, p Caller) {
	s, err := h.open(r.Context(), p)
	if err != nil {
		unavailable(w, err)
		return
	}
	h.sessions.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), serverKey{}, s)))
	for session := range s.mcp.Sessions() {
		h.mu.Lock()
		s.session = session
		h.lasting[session.ID()] = s
		h.mu.Unlock()
		// Ends with the session, which the client, a timeout or Close ends.
		h.under.Go(func() {
			_ = session.Wait()
			h.drop(s)
		})
		return
	}
	h.drop(s) // no session
}

// look ends a session's calls if the client ends the session, or if the token was replaced.
func (h *Handler) look(id string, p Caller, method string) {
	h.mu.Lock()
	s := h.lasting[id]
	h.mu.Unlock()
	if s == nil || s.caller.Token != p.Token {
		return
	}
	replaced := s.caller.Secret != p.Secret
	if replaced || method == http.MethodDelete {
		s.end()
	}
	if replaced {
		_ = s.session.Close()
	}
}

func (h *Handler) serveAlone(w http.ResponseWriter, r *http.Request, p Caller) {
	s, err := h.shared(r.Context(), p)
	if err != nil {
		unavailable(w, err)
		return
	}
	defer h.leave(s)
	h.alone.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), serverKey{}, s)))
}

// shared returns the server for the requests of a token. The caller must call leave.
func (h *Handler) shared(ctx context.Context, p Caller) (*server, error) {
	if s := h.join(p); s != nil {
		return s, nil
	}
	made, err := h.open(ctx, p)
	if err != nil {
		return nil, err
	}
	made.shared = true
	h.mu.Lock()
	old := h.common[common{p.Token, p.Dir}]
	h.common[common{p.Token, p.Dir}] = made
	made.users++
	h.mu.Unlock()
	if old != nil {
		h.retire(old)
	}
	return made, nil
}

func (h *Handler) join(p Caller) *server {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.common[common{p.Token, p.Dir}]
	if s == nil || s.caller != p {
		return nil
	}
	s.users++
	return s
}

func (h *Handler) leave(s *server) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s.users--
	if s.users == 0 && !h.closed {
		time.AfterFunc(h.options.Linger, func() { h.retire(s) })
	}
}

// retire closes a server that has no requests. It waits for calls, which a client may continue with another request.
func (h *Handler) retire(s *server) {
	h.mu.Lock()
	_, open := h.servers[s]
	if !open || h.closed || s.users > 0 {
		h.mu.Unlock()
		return
	}
	if s.calls.some() {
		time.AfterFunc(h.options.Linger, func() { h.retire(s) })
		h.mu.Unlock()
		return
	}
	h.under.Add(1)
	h.mu.Unlock()
	defer h.under.Done()
	h.drop(s)
}

func (h *Handler) drop(s *server) {
	h.mu.Lock()
	delete(h.servers, s)
	if s.session != nil {
		delete(h.lasting, s.session.ID())
	}
	if at := (common{s.caller.Token, s.caller.Dir}); h.common[at] == s {
		delete(h.common, at)
	}
	h.mu.Unlock()
	s.close()
}

// Close cancels all calls, ends the sessions, and waits for requests until ctx ends, because some clients may not
// read.
func (h *Handler) Close(ctx context.Context) {
	h.ending.Do(func() {
		// Ends when the connections of all clients have ended.
		go func() {
			defer close(h.ended)
			h.end()
		}()
	})
	select {
	case <-h.ended:
	case <-ctx.Done():
	}
}

func (h *Handler) end() {
	h.mu.Lock()
	h.closed = true
	sessions := map[*server]*mcp.ServerSession{}
	for s := range h.servers {
		sessions[s] = s.session
	}
	h.mu.Unlock()
	var closing sync.WaitGroup
	for s, session := range sessions {
		s.close()
		if session != nil {
			closing.Go(func() { _ = session.Close() })
		}
	}
	closing.Wait()
	h.under.Wait()
}
