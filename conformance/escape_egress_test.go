//go:build linux

package conformance

import (
	"encoding/json"
	"strings"

	"github.com/gorilla/websocket"
	"github.com/toold/toold/conformance/suite/escape"
)

// egressSettings are the sandbox's settings for such a case.
func egressSettings(c escape.Case, box map[string]any) {
	box["network"] = "proxy"
	box["egress"] = map[string]any{"allow": c.Hosts(), "ports": []int{80, 443, 7777}}
}

// egressPolicy is a policy that allows every command, denies evil.example, and asks
// about every other host that the configuration does not list.
func egressPolicy(all []byte) ([]byte, error) {
	policy := map[string]any{}
	if err := json.Unmarshal(all, &policy); err != nil {
		return nil, err
	}
	policy["defaults"].(map[string]any)["net"] = "ask"
	policy["net"] = []any{map[string]any{"id": "evil", "decision": "deny", "hosts": []string{"evil.example", "*.evil.example"}}}
	return json.Marshal(policy)
}

// approveOneHost says yes to every call, and of the hosts that running calls want to
// contact to asked.example only.
func approveOneHost(c *conn, kind int, data []byte) {
	var request struct {
		Type   string `json:"message_type"`
		ID     string `json:"id"`
		Reason string `json:"reason"`
	}
	if json.Unmarshal(data, &request) != nil || request.Type != "approval_request_message" {
		return
	}
	_, host, asks := strings.Cut(request.Reason, "wants to contact ")
	if !asks || strings.HasPrefix(host, "asked.example.") {
		approve(c, kind, data)
		return
	}
	answer, _ := json.Marshal(map[string]any{
		"message_type": "approval_response_message", "approve": false, "approval_request_id": request.ID,
	})
	c.send(websocket.TextMessage, answer)
}
