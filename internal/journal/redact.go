package journal

import "github.com/toold/toold/internal/redact"

// Redact sets a function that replaces confidential texts in all strings recorded from now on; it may be nil. Secrets
// with known formats are always masked.
func (j *Journal) Redact(replace func(text string) string) {
	j.write.turn <- struct{}{}
	j.write.batch.replace = replace
	<-j.write.turn
}

// redacted masks in place the secrets in those texts of an event that come from outside.
func redacted(e event, replace func(string) string) {
	mask := func(body *[]byte) { *body = redact.JSON(*body, replace) }
	text := func(s *string) {
		if *s != "" {
			*s = string(redact.JSON([]byte(*s), replace))
		}
	}
	reason := func(d *Decision) {
		text(&d.Widened)
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
		mask(&e.request.body)
		reason(&e.decision)
		if e.answer != nil {
			redacted(e.answer, replace)
		}
	case *decisionEvent:
		reason(&e.decision)
	case *returnEvent:
		mask(&e.body)
		text(&e.outcome.Sandbox)
		reason(&e.outcome.Decision)
	case *messageEvent:
		mask(&e.m.Body)
	}
}
