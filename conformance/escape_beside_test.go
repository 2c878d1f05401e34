//go:build linux

package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/gorilla/websocket"

	"github.com/toold/toold/client"
)

// widenedMark, in a script, has the person who says yes to it let it write in @OUT@.
const widenedMark = "# widened"

// widens tells whether a person adds to the sandbox of a call of the case.
func (c escapeCase) widens() bool {
	return strings.Contains(c.Command, widenedMark) || strings.Contains(c.Beside, widenedMark)
}

// playBeside starts the call in the background, if the case has one, and waits until that has
// made the file beside-ready in the workspace.
func (p *escapePlayer) playBeside(ctx context.Context) error {
	c := p.job.Case
	if c.Beside == "" {
		return nil
	}
	ret, err := p.agent.Call(ctx, client.Call{
		Tool: "bash", ConversationID: "beside",
		Arguments: map[string]any{"command": p.f.places.Replace(c.Beside), "background": true},
	}, client.Events{})
	if err != nil || ret.Status != "success" {
		return fmt.Errorf("the call beside: %w %.300s", err, ret.Result)
	}
	if out, code := p.f.outside(ctx, `for i in {1..1200}; do [ -e @WS@/beside-ready ] && exit; sleep 0.05; done; exit 1`, nil); code != 0 {
		return fmt.Errorf("the call beside is not ready: %s", out)
	}
	return nil
}

// approveWidened says yes to every call, and adds to the sandbox of those that are marked.
func (p *escapePlayer) approveWidened(c *conn, kind int, data []byte) {
	if !bytes.Contains(data, []byte(widenedMark)) {
		approve(c, kind, data)
		return
	}
	var request struct {
		Type string `json:"message_type"`
		ID   string `json:"id"`
	}
	if json.Unmarshal(data, &request) != nil || request.Type != "approval_request_message" {
		return
	}
	answer, _ := json.Marshal(map[string]any{
		"message_type": "approval_response_message", "approve": true, "approval_request_id": request.ID,
		"widen": map[string]any{"write": p.f.out},
	})
	c.send(websocket.TextMessage, answer)
}
