package journal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/toold/toold/internal/strict"
	"github.com/toold/toold/message"
)

// stamped assigns a unique id to an incoming message and writes the journal's fields into its body.
func stamped(m Message) (Message, error) {
	if m.ID == "" {
		m.ID = message.NewID("message")
	}
	rest, err := unstamped(m.Body)
	if err != nil {
		return m, err
	}
	stamp, err := message.Encode(struct {
		ID   string `json:"id"`
		Seq  int64  `json:"seq_id"`
		Date string `json:"date"`
		Type string `json:"message_type"`
	}{m.ID, m.Seq, m.Time.UTC().Format(time.RFC3339Nano), m.Type})
	if err != nil {
		return m, err
	}
	if len(rest) > len("{}") {
		stamp[len(stamp)-1] = ','
		stamp = append(stamp, rest[1:]...)
	}
	m.Body = stamp
	return m, nil
}

const maxDepth = 1000 // of JSON that is not copied field by field

// unstamped removes those fields from a JSON object.
func unstamped(body []byte) ([]byte, error) {
	if bytes.HasPrefix(body, []byte(`{"`)) && !mayBeStamped(body) && strict.Valid(body, maxDepth) {
		return body, nil
	}
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(body, &fields); err != nil || fields == nil {
		return nil, fmt.Errorf("the body of a message is no JSON object (%v)", err)
	}
	for _, name := range []string{"id", "seq_id", "date", "message_type"} {
		delete(fields, name)
	}
	return message.Encode(fields)
}

// mayBeStamped is false only for objects without these fields, even escaped.
func mayBeStamped(body []byte) bool {
	for _, name := range []string{`"id"`, `"seq_id"`, `"date"`, `"message_type"`, `\u`} {
		if bytes.Contains(body, []byte(name)) {
			return true
		}
	}
	return false
}
