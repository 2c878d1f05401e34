package dispatch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/toold/toold/internal/approval"
	"github.com/toold/toold/message"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/tools"
)

// Causes of a stop beside cancelled.
var (
	errClientGone = errors.New("the client went away and did not come back")
	errShutdown   = errors.New("toold is stopping")
)

type cancelled struct{ reason string }

func (c cancelled) Error() string {
	if c.reason == "" {
		return "the call was cancelled"
	}
	return "the call was cancelled: " + c.reason
}

func stopped(ctx context.Context) *refusal {
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errShutdown):
		return &refusal{message.Shutdown, "toold was stopped before the call had ended. Send it again under a new id when toold is back"}
	case errors.Is(cause, errClientGone):
		return &refusal{message.Cancelled, "the client went away and did not come back within limits.linger. Send the call again under a new id if it is still wanted"}
	case cause == nil:
		return &refusal{message.Cancelled, cancelled{}.Error()}
	default:
		return &refusal{message.Cancelled, fmt.Sprintf("%v. Do not repeat it unasked", cause)}
	}
}

// causeOf returns the wire's cause of a stopped call's end.
func causeOf(ctx context.Context, kind message.ErrorType) string {
	switch {
	case kind == message.Timeout:
		return message.ByTimeout
	case kind == message.Shutdown:
		return message.ByShutdown
	case kind != message.Cancelled:
		return ""
	case errors.Is(context.Cause(ctx), errClientGone):
		return message.ByClientGone
	default:
		return message.ByCancel
	}
}

func explained(ctx context.Context, r tools.Result) tools.Result {
	if r.Failure != tools.Cancelled {
		return r
	}
	why := stopped(ctx)
	r.Failure = tools.Failure(why.kind)
	text := "Stopped: " + why.text + "."
	if r.Text != "" {
		text += "\n" + r.Text
	}
	r.Text = text
	return r
}

type refusal struct {
	kind message.ErrorType
	text string
}

// The decision's reason says why and what to do.
func deniedByPolicy(d policy.Decision) *refusal {
	text := fmt.Sprintf("denied by rule %s (%s). %s", d.Rule, d.Source, d.Reason)
	if part := strings.TrimSpace(d.Effect.Source); part != "" && !strings.Contains(d.Reason, part) {
		text += " The part at fault: " + part + "."
	}
	return &refusal{message.Denied, text}
}

func deniedByPerson(v approval.Verdict, rule string) *refusal {
	return &refusal{message.Denied, fmt.Sprintf("denied by a person (%s), whom rule %s asked. User reason: %s", v.By, rule, cmp.Or(v.Reason, "no reason given"))}
}
