package server

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/toold/toold/internal/must"
)

// post asks for a reload with a token.
func post(t *testing.T, ts *httptest.Server, secret string) (status int, body string) {
	t.Helper()
	res := request(t, http.MethodPost, ts.URL+"/v1/reload", map[string]string{"Authorization": "Bearer " + secret})
	text := must.Get(io.ReadAll(res.Body))(t)
	return res.StatusCode, string(text)
}

func TestOnlyDecidersReloadThePolicy(t *testing.T) {
	t.Parallel()
	loaded := 0
	_, ts := newTestServer(t, func(o *Options) {
		o.Tokens = also(o.Tokens, Token{Name: "a", Secret: "agent-secret", Roles: []Role{Agent, Observer}}, Token{Name: "b", Secret: "admin-secret", Roles: []Role{Admin}})
		o.Reload = func() (Reloaded, error) { loaded++; return Reloaded{Policy: "my.yaml"}, nil }
	})
	if status, body := post(t, ts, "agent-secret"); status != http.StatusForbidden || loaded != 0 {
		t.Errorf("an agent: %d %s", status, body)
	}
	if status, body := post(t, ts, "admin-secret"); status != http.StatusOK || loaded != 1 || strings.TrimSpace(body) != `{"policy":"my.yaml"}` {
		t.Errorf("an admin: %d %s", status, body)
	}
}

func TestAFaultyPolicyIsAnsweredWithItsFault(t *testing.T) {
	t.Parallel()
	_, ts := newTestServer(t, func(o *Options) {
		o.Tokens = also(o.Tokens, Token{Name: "b", Secret: "admin-secret", Roles: []Role{Admin}})
		o.Reload = func() (Reloaded, error) { return Reloaded{Policy: "my.yaml"}, errors.New("my.yaml:3:1: no such key") }
		o.Policy = func() Reloaded { return Reloaded{Policy: "my.yaml", Error: "as before"} }
	})
	if status, body := post(t, ts, "admin-secret"); status != http.StatusUnprocessableEntity || !strings.Contains(body, "my.yaml:3:1") {
		t.Errorf("got %d %s", status, body)
	}
	res := request(t, http.MethodGet, ts.URL+"/v1/reload", map[string]string{"Authorization": "Bearer admin-secret"})
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK || strings.TrimSpace(string(text)) != `{"policy":"my.yaml","error":"as before"}` {
		t.Errorf("the last reload: %d %s %v", res.StatusCode, text, err)
	}
}
