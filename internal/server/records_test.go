package server

import (
	"net/http"
	"testing"

	"github.com/toold/toold/policy"
)

// TestAQueryOverHTTPIsCheckedAsAFrameIs: a filter that is misspelt must not select
// everything.
func TestAQueryOverHTTPIsCheckedAsAFrameIs(t *testing.T) {
	ts := newCallServer(t, policy.Allow, hello)
	token := map[string]string{"Authorization": "bearer " + agentSecret} // any case will do
	for query, want := range map[string]int{
		"?status=error&limit=2&order=asc&message_types=a,b": http.StatusOK,
		"?status=fine":         http.StatusBadRequest,
		"?limit=1e1":           http.StatusBadRequest,
		"?limit=":              http.StatusBadRequest,
		"?run_id=a&run_id=b":   http.StatusBadRequest,
		"?tool_call_id=%00":    http.StatusBadRequest,
		"?message_type=cancel": http.StatusOK, // no field of a query
	} {
		if res := get(t, ts.URL+"/v1/messages"+query, token); res.StatusCode != want {
			t.Errorf("GET /v1/messages%s: %s, want %d", query, res.Status, want)
		}
	}
}
