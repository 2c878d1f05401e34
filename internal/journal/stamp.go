package journal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/toold/toold/internal/strict"
	"github.com/toold/toold/message"
)

// stamp generates an id for an incoming message that has none, and writes id, number, date and type into its body,
// because clients may repeat ids.
func (s *sent) stamp(at time.Time, kind string) error {
	if s.id == "" {
		s.id = message.NewID("message")
	}
	rest, err := unstamped(s.body)
	if err != nil {
		return err
	}
	stamp, err := message.Encode(struct {
		ID   string `json:"id"`
		Seq  int64  `json:"seq_id"`
		Date string `json:"date"`
		Type string `json:"message_type"`
	}{s.id, s.seq, at.UTC().Format(time.RFC3339Nano), kind})
	if err != nil {
		return err
	}
	if len(rest) > len("{}") {
		stamp[len(stamp)-1] = ','
		stamp = append(stamp, rest[1:]...)
	}
	s.body = stamp
	return nil
}

const maxDepth = 1000 // nesting of JSON that is copied unparsed

// unstamped removes the fields that stamp writes from a JSON object.
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

// mayBeStamped returns false only for objects without the fields of a stamp. Their names may be escaped.
func mayBeStamped(body []byte) bool {
	names := []string{`"id"`, `"seq_id"`, `"date"`, `"message_type"`, `\u`}
	return slices.ContainsFunc(names, func(name string) bool { return bytes.Contains(body, []byte(name)) })
}
