package server

import (
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"net/http/pprof"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/gorilla/websocket"
)

// Role is a set of rights of a token.
type Role string

// Roles.
const (
	Agent    Role = "agent"    // may request calls
	Approver Role = "approver" // may decide on calls
	Observer Role = "observer" // may read
	Admin    Role = "admin"    // may decide, read and stop everything
)

// Token is the name and the roles of a client.
type Token struct {
	Name   string
	Secret string
	Roles  []Role
	Valid  func() bool // reports whether the token is still valid; nil: always
}

func (t Token) revoked() bool { return t.Valid != nil && !t.Valid() }

func (t Token) has(r Role) bool { return slices.Contains(t.Roles, r) }

func (t Token) decides() bool { return t.has(Approver) || t.has(Admin) }

type access func(s *Server, r *http.Request) (token Token, status int)

// anyone needs no token: health checks send none, and the page of an approval request asks for one.
func anyone(*Server, *http.Request) (Token, int) { return Token{}, http.StatusOK }

func tokenOf(s *Server, r *http.Request) (Token, int) {
	scheme, secret, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") { // RFC 9110 section 11.1
		return Token{}, http.StatusUnauthorized
	}
	if t, ok := s.tokenOf(secret); ok {
		return t, http.StatusOK
	}
	return Token{}, http.StatusUnauthorized
}

func (s *Server) tokenOf(secret string) (Token, bool) {
	given := sha256.Sum256([]byte(secret))
	for _, t := range s.opt.Tokens() {
		known := sha256.Sum256([]byte(t.Secret))
		if t.Secret != "" && subtle.ConstantTimeCompare(given[:], known[:]) == 1 {
			return t, true
		}
	}
	return Token{}, false
}

func (a access) of(roles ...Role) access {
	return func(s *Server, r *http.Request) (Token, int) {
		token, status := a(s, r)
		if status == http.StatusOK && !slices.ContainsFunc(roles, token.has) {
			return Token{}, http.StatusForbidden
		}
		return token, status
	}
}

func upgrade(s *Server, r *http.Request) (Token, int) {
	if !websocket.IsWebSocketUpgrade(r) {
		return Token{}, http.StatusUpgradeRequired
	}
	return tokenOf(s, r)
}

// A route is one path of the server with its access check, which is never nil.
type route struct {
	pattern string
	access  access
	serve   func(*Server, http.ResponseWriter, *http.Request, Token)
}

func routes() []route {
	caller, decider, watcher := access(tokenOf).of(Agent), access(tokenOf).of(Approver, Admin), access(tokenOf).of(Observer, Admin)
	return []route{
		{"GET /healthz", anyone, (*Server).serveHealth},
		{"GET /readyz", anyone, (*Server).serveReady},
		{"GET /v1/ws", upgrade, (*Server).serveSocket},
		{"GET /ws", upgrade, (*Server).serveSocket},
		{"GET /v1/codex", access(upgrade).of(Agent), (*Server).serveCodex},
		{"GET /v1/messages", tokenOf, (*Server).serveMessages},
		{"GET /v1/agents/{id}/messages", tokenOf, serveHistory("agent_id", "desc")},
		{"GET /v1/conversations/{id}/messages", tokenOf, serveHistory("conversation_id", "desc")},
		{"GET /v1/runs/{id}/messages", tokenOf, serveHistory("run_id", "asc")},
		{"POST /mcp", caller, (*Server).serveMCP},
		{"GET /mcp", caller, (*Server).serveMCP},
		{"DELETE /mcp", caller, (*Server).serveMCP},
		{"POST /v1/calls", caller, (*Server).serveCalls},
		{"GET /v1/calls/{id}", caller, (*Server).serveCall},
		{"GET " + PathOfQuestion("{id}"), anyone, (*Server).servePage},
		{"POST " + PathOfQuestion("{id}"), anyone, (*Server).servePageAnswer},
		{"GET /v1/reload", decider, (*Server).servePolicy},
		{"POST /v1/reload", decider, (*Server).serveReload},
		{"GET /metrics", watcher, (*Server).serveMetrics},
		{"GET /debug/pprof/", inspector, profile(pprof.Index)},
		{"GET /debug/pprof/profile", inspector, profile(pprof.Profile)},
		{"GET /debug/pprof/trace", inspector, profile(pprof.Trace)},
	}
}

func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	for _, rt := range routes() {
		mux.HandleFunc(rt.pattern, func(w http.ResponseWriter, r *http.Request) {
			token, status := rt.access(s, r)
			if status != http.StatusOK {
				s.refused(refusalOf(status))
				refuse(w, status)
				return
			}
			s.serveRoute(rt, w, r, token)
		})
	}
	return s.checkOrigin(mux)
}

func (s *Server) serveRoute(rt route, w http.ResponseWriter, r *http.Request, token Token) {
	if len(token.Roles) > 0 {
		s.strangers.known(r)
	}
	if len(token.Roles) > 0 && !websocket.IsWebSocketUpgrade(r) {
		leave, why := s.admit(token)
		if why != "" {
			s.refuseBusy(w, why)
			return
		}
		defer leave()
	}
	rt.serve(s, w, r, token)
}

// refuseBusy answers a client that has too many connections.
func (s *Server) refuseBusy(w http.ResponseWriter, why string) {
	s.refused(refusedLimit)
	w.Header().Set("Retry-After", "1")
	http.Error(w, why, http.StatusServiceUnavailable)
}

// checkOrigin rejects foreign Host and Origin headers. Comparing the two would not detect DNS rebinding: such a page
// sends its own name in both.
func (s *Server) checkOrigin(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.ours(r.Host) {
			s.refused(refusedHost)
			http.Error(w, "toold: the Host header names another machine; allow it with allowed_hosts", http.StatusForbidden)
			return
		}
		if origin := r.Header.Get("Origin"); origin != "" && !s.friendly(origin) {
			s.refused(refusedOrigin)
			http.Error(w, "toold: pages of this origin may not connect; allow it with allowed_origins", http.StatusForbidden)
			return
		}
		_ = http.NewResponseController(w).SetWriteDeadline(time.Time{}) // remove the deadline of an earlier patient response
		next.ServeHTTP(w, r)
	})
}

func (s *Server) ours(hostport string) bool {
	host := hostport
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		host = h
	}
	host = strings.ToLower(strings.Trim(host, "[]"))
	return slices.Contains([]string{"localhost", "127.0.0.1", "::1"}, host) || slices.Contains(s.opt.AllowedHosts, host)
}

func (s *Server) friendly(origin string) bool {
	if slices.Contains(s.opt.AllowedOrigins, origin) {
		return true
	}
	u, err := url.Parse(origin)
	if err != nil || u.Host == "" {
		return false
	}
	return slices.Contains(s.opt.OwnOrigins, u.Scheme+"://"+u.Host)
}

func refuse(w http.ResponseWriter, status int) {
	switch status {
	case http.StatusUnauthorized:
		w.Header().Set("WWW-Authenticate", `Bearer realm="toold"`)
		http.Error(w, "toold: a token is needed: Authorization: Bearer … (toold token show)", status)
	case http.StatusUpgradeRequired:
		w.Header().Set("Upgrade", "websocket")
		http.Error(w, "toold: this is a WebSocket endpoint", status)
	case http.StatusMisdirectedRequest:
		http.Error(w, "toold: only the Unix socket serves this; set socket in the configuration", status)
	case http.StatusForbidden:
		http.Error(w, "toold: the role of this token does not allow this", status)
	default:
		http.Error(w, "toold: refused", status)
	}
}
