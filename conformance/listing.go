//go:build linux

package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/toold/toold/conformance/suite"
)

// listed is one message of a listing.
type listed struct {
	seq  int64
	body map[string]any
}

// listing returns the messages that answered a request, "" for the last one. It fails if there are none.
func (p *player) listing(ctx context.Context, request string) ([]listed, error) {
	frames, _ := p.rec.all()
	var items []any
	for _, f := range frames {
		m, _ := f.value.(map[string]any)
		if list, ok := m["messages"].([]any); ok && (request == "" || m["request_id"] == request) {
			items = list
		}
	}
	if len(items) == 0 {
		return nil, fmt.Errorf("the listing %s has no messages", request)
	}
	numbers, err := p.sequence(ctx)
	if err != nil {
		return nil, err
	}
	var out []listed
	for _, item := range items {
		body, _ := item.(map[string]any)
		id, _ := body["id"].(string)
		seq, ok := numbers[id]
		if !ok {
			return nil, fmt.Errorf("the journal does not know the message %q", id)
		}
		out = append(out, listed{seq, body})
	}
	return out, nil
}

func (p *player) newestFirst(ctx context.Context, words []string) error {
	list, err := p.listing(ctx, words[0])
	if err == nil && !slices.IsSortedFunc(list, func(a, b listed) int { return int(b.seq - a.seq) }) {
		err = errors.New("it is not sorted so")
	}
	return err
}

func (p *player) olderThan(ctx context.Context, words []string) error {
	older, err1 := p.listing(ctx, words[0])
	newer, err2 := p.listing(ctx, words[1])
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	bySeq := func(a, b listed) int { return int(a.seq - b.seq) }
	if a, b := slices.MaxFunc(older, bySeq), slices.MinFunc(newer, bySeq); a.seq >= b.seq {
		return fmt.Errorf("message %d is not older than %d", a.seq, b.seq)
	}
	return nil
}

func (p *player) increasing(ctx context.Context, _ []string) error {
	list, err := p.listing(ctx, "")
	for i := 1; i < len(list); i++ {
		if list[i].seq <= list[i-1].seq {
			return fmt.Errorf("message %d comes after %d", list[i].seq, list[i-1].seq)
		}
	}
	return err
}

func (p *player) allHave(ctx context.Context, words []string) error {
	list, err := p.listing(ctx, "")
	for _, l := range list {
		if got := l.body[words[0]]; got != words[1] {
			return fmt.Errorf("message %d has %s", l.seq, suite.Short(got))
		}
	}
	return err
}

func (p *player) onlyType(ctx context.Context, words []string) error {
	return p.allHave(ctx, []string{"message_type", words[0]})
}

func (p *player) rowsPrecede(ctx context.Context, words []string) error {
	list, err := p.listing(ctx, "")
	var last, first int64
	for _, l := range list {
		id := l.body["tool_call_id"]
		if id == nil {
			id, _ = lookup("tool_call.tool_call_id", l.body)
		}
		if id == words[0] {
			last = max(last, l.seq)
		}
		if id == words[1] && first == 0 {
			first = l.seq
		}
	}
	before := 0 < last && last < first
	if err == nil && !before {
		err = fmt.Errorf("the last of one is %d, the first of the other %d", last, first)
	}
	return err
}
