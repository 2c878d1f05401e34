package trace

import (
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/toold/toold/internal/dispatch"
	"github.com/toold/toold/message"
)

// maxID bounds sent ids, in bytes: clients choose them.
const maxID = 256

// call is what is sent of a call, without keeping its arguments and output in memory.
type call struct {
	tool, id, client, agent, conversation, run, step string
	action, by, errorType                            string
	exitCode                                         *int
	failed                                           bool
	begun, ended                                     time.Time
	steps                                            []dispatch.Step
}

func newCall(c *dispatch.Call, ret *message.ToolReturn) call {
	of := c.Client()
	n := call{
		tool: c.Tool(), id: c.ID, client: of.Client, agent: of.AgentID, conversation: of.ConversationID,
		exitCode: ret.ExitCode, failed: ret.Status == "error", begun: c.Received(), ended: time.Now(), steps: c.Steps(),
	}
	if ret.RunID != nil {
		n.run = *ret.RunID
	}
	if ret.StepID != nil {
		n.step = *ret.StepID
	}
	if d := ret.Decision; d != nil {
		n.action, n.by = d.Action, d.By
	}
	if ret.ErrorType != nil {
		n.errorType = string(*ret.ErrorType)
	}
	return n
}

func (c call) attributes() (list []attribute.KeyValue) {
	for key, text := range map[string]string{
		"toold.tool": c.tool, "toold.call_id": c.id, "toold.client": c.client, "toold.agent_id": c.agent, "toold.conversation_id": c.conversation,
		"toold.run_id": c.run, "toold.step_id": c.step, "toold.decision": c.action, "toold.decision.by": c.by, "error.type": c.errorType,
	} {
		if text != "" {
			list = append(list, attribute.String(key, strings.ToValidUTF8(text[:min(len(text), maxID)], "")))
		}
	}
	if c.exitCode != nil {
		list = append(list, attribute.Int("process.exit.code", *c.exitCode))
	}
	return list
}
