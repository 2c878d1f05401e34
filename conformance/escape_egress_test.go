//go:build linux

package conformance

import (
	"encoding/json"
	"regexp"
	"strings"

	"github.com/gorilla/websocket"
)

// Cases about connections by name begin their setup with "net=proxy allow HOST…",
// after which may come words, and after ";" a script.
const proxySetup = "net=proxy "

func (c escapeCase) byName() bool { return strings.HasPrefix(c.Setup, proxySetup) }

// hosts are those that the configuration of a case lists.
func (c escapeCase) hosts() []string {
	words, _, _ := strings.Cut(c.Setup, ";")
	return regexp.MustCompile(`[\w.*-]+\.example(:\d+)?`).FindAllString(words, -1)
}

// egressSettings are the sandbox's settings for such a case.
func egressSettings(c escapeCase, box map[string]any) {
	box["network"] = "proxy"
	box["egress"] = map[string]any{"allow": c.hosts(), "ports": []int{80, 443, 7777}}
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

// egressChecks are what such cases say in words.
func egressChecks() []phrase {
	return []phrase{
		{`^server sees a (request|connection)$`, `grep -qE 'HIT tcp:(203\.0\.113\.5|93\.184\.216\.66):' @LOG@`},
		{`^DENY event with the name$`, `grep -q '"action":"deny"' "$$EVENTS"`},
		{`^DENY event with ip:port$`, `grep -q '203\.0\.113\.5:80' "$$RETURN"`},
		{`^reply received$`, `grep -q 'reply:hello from' "$$SBOUT"`},
		{`^DENY \(resolved address class\)$`, `grep -q 'no public address' "$$RETURN"`},
		{`^DENY when sni_check=true$`, `grep -q 'TLS' "$$RETURN" && ! grep -q ':443 said .*evil' @LOG@`},
		{`^any query leaves the machine$`, `grep -q '^ASKED' @LOG@`},
		{`^REFUSED$`, `grep -q REFUSED "$$SBOUT"`},
	}
}
