package dispatch

import (
	"encoding/json"

	"github.com/toold/toold/internal/redact"
	"github.com/toold/toold/message"
)

const longestWords = 2000

// findAsker returns who asks. It parses the arguments; Call.asker does so once.
func (c *Call) findAsker() message.Asker {
	a := c.Client()
	var words struct{ Description, Justification json.RawMessage }
	if json.Unmarshal(c.asked.Arguments, &words) == nil {
		a.Description, a.Justification = firstWords(words.Description), firstWords(words.Justification)
	}
	return a
}

func firstWords(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return ""
	}
	return shortened(text, longestWords)
}

func shortened(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return redact.Beginning(text, most) + "…"
}
