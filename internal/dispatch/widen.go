package dispatch

import (
	"errors"
	"strings"

	"github.com/toold/toold/internal/approval"
	"github.com/toold/toold/message"
	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/sandbox/widen"
	"github.com/toold/toold/tools"
)

func (d *Dispatcher) mayWiden(q question) *message.MayWiden {
	return (*message.MayWiden)(bounds(q).Offer(q.call.base()))
}

func bounds(q question) widen.Bounds {
	if c, ok := q.inv.(tools.Confined); ok {
		return c.Widens(q.call.workspace.opt.Widen)
	}
	return widen.Bounds{}
}

func (c *Call) base() sandbox.Profile {
	return c.workspace.opt.Profile.AtMost(c.profile).Within(c.limit)
}

// checkAnswer refuses invalid escalations and edits: the question stays open.
func (d *Dispatcher) checkAnswer(q question) func(approval.Verdict) error {
	base := q.call.base()
	return func(v approval.Verdict) error {
		if _, err := d.offered(q, v); err != nil {
			return err
		}
		if _, err := d.editedCall(q, v); err != nil {
			return err
		}
		g, err := grant(q, base, v)
		g.Close() // the one that counts is made as soon as the answer is taken; see approved
		return err
	}
}

// grant is what an answer adds to the sandbox of a call, nil when that is nothing.
func grant(q question, base sandbox.Profile, v approval.Verdict) (*widen.Grant, error) {
	if !v.Approve && v.Widen != (approval.Widening{}) {
		return nil, errors.New("an answer of no widens nothing")
	}
	return bounds(q).Check(base, widen.Words(v.Widen))
}

// onlyYesOrNo refuses answers that add something to a question about a host.
func onlyYesOrNo(v approval.Verdict) error {
	if v.Widen != (approval.Widening{}) || v.Arguments != "" || v.Remember != "" && v.Remember != onceOnly {
		return errors.New("the call runs already, and this question is about one host: answer it with yes or no")
	}
	return nil
}

func (c *Call) added() *message.Widening { return message.Widening(c.widened.Words()).Recorded() }

// wider reports the escalation to the model, which must not rely on it later.
func (c *Call) wider(r tools.Result) tools.Result {
	if w := c.added(); w != nil {
		r.Text = strings.TrimPrefix(r.Text+"\nA person has widened the sandbox of this one call: "+w.String()+". Other calls are confined as before.", "\n")
	}
	return r
}
