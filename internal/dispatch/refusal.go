package dispatch

import (
	"fmt"
	"strings"

	"github.com/toold/toold/internal/approval"
	"github.com/toold/toold/message"
	"github.com/toold/toold/policy"
)

// refusal is why a call did not run: which rule, why, and what to do next.
type refusal struct {
	kind message.ErrorType
	text string
}

// deniedByPolicy names the rule; the decision's reason says why and what to do.
func deniedByPolicy(d policy.Decision) *refusal {
	text := fmt.Sprintf("denied by rule %s (%s). %s", d.Rule, d.Source, d.Reason)
	if part := strings.TrimSpace(d.Effect.Source); part != "" && !strings.Contains(d.Reason, part) {
		text += " The part at fault: " + part + "."
	}
	return &refusal{message.Denied, text}
}

func deniedByPerson(v approval.Verdict, rule string) *refusal {
	reason := v.Reason
	if reason == "" {
		reason = "no reason given"
	}
	return &refusal{message.Denied, fmt.Sprintf("denied by a person (%s), whom rule %s asked. User reason: %s", v.By, rule, reason)}
}
