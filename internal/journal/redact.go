package journal

import "github.com/toold/toold/internal/redact"

// Redact has replace change the strings of all that is recorded from now on: it replaces
// texts that must not be kept. Secrets that are known by their shape are masked in any case.
// nil replaces nothing.
func (j *Journal) Redact(replace func(text string) string) {
	j.write.turn <- struct{}{}
	j.write.batch.replace = replace
	<-j.write.turn
}

// redacted masks the secrets in what an event has of others, before it is recorded.
func redacted(e event, replace func(string) string) {
	mask := func(body *[]byte) { *body = redact.JSON(*body, replace) }
	reason := func(d *Decision) {
		if d.Reason == "" {
			return
		}
		if replace != nil {
			d.Reason = replace(d.Reason)
		}
		d.Reason = string(redact.Mask([]byte(d.Reason)))
	}
	switch e := e.(type) {
	case *callEvent:
		mask(&e.call.Arguments)
		mask(&e.request.Body)
		mask(&e.answer.body)
		reason(&e.decision)
		reason(&e.answer.outcome.Decision)
	case *decisionEvent:
		reason(&e.decision)
	case *returnEvent:
		mask(&e.body)
		reason(&e.outcome.Decision)
	case *messageEvent:
		mask(&e.m.Body)
	}
}
