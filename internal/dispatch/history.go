package dispatch

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/toold/toold/internal/display"
	"github.com/toold/toold/internal/journal"
	"github.com/toold/toold/message"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/policy/check"
	"github.com/toold/toold/tools/argument"
)

const historyPage = 500

// History returns the calls received after since, for testing policies: the latest most calls, or all if most is 0.
// effects returns the effects of a call.
func History(ctx context.Context, log *journal.Journal, since time.Time, most int, effects func(tool string, arguments json.RawMessage) ([]policy.Effect, error)) (*check.History, error) {
	var events []recorded
	for before := journal.Key(0); most == 0 || len(events) < most; {
		limit := historyPage
		if most > 0 {
			limit = min(limit, most-len(events))
		}
		page, err := log.Latest(ctx, before, limit)
		if err != nil {
			return nil, err
		}
		for _, rec := range page {
			if before = rec.Key; rec.ReceivedAt.After(since) {
				events = append(events, recorded{eventOf(rec), rec.Key, rec.Tool, rec.Canonical})
			}
		}
		if len(page) == 0 || page[len(page)-1].ReceivedAt.Before(since) {
			break
		}
	}
	slices.Reverse(events)
	h := &check.History{}
	for _, e := range events {
		arguments, err := log.Arguments(e.key)
		if err != nil {
			return nil, err
		}
		e.Text = CallText(e.canonical, arguments)
		h.Add(e.Event, func() ([]policy.Effect, error) { return effects(e.tool, arguments) })
	}
	return h, nil
}

type recorded struct {
	check.Event
	key             journal.Key
	tool, canonical string
}

func eventOf(rec journal.Record) check.Event {
	hash, _, _ := strings.Cut(rec.ArgsHash, partMark)
	return check.Event{
		ID: rec.ID, Client: rec.Client, Agent: rec.AgentID, Hash: hash, At: rec.ReceivedAt,
		ByPerson: rec.Decision.By == "person" || rec.Decision.By == "beforehand",
		Allowed:  rec.Decision.Action == policy.Allow.String(),
		Altered:  rec.Decision.Widened != "" || edited(rec),
		Worked:   rec.Status == "success" && (rec.ExitCode == nil || *rec.ExitCode == 0),
	}
}

// edited reports whether a person changed the arguments, or true if the return cannot be read.
func edited(rec journal.Record) bool {
	if rec.Decision.By != "person" && rec.Decision.By != "beforehand" || len(rec.Result) == 0 {
		return false
	}
	ret, err := message.Record(rec.Result).Return()
	return err != nil || ret.Decision.IsEdited()
}

// CallText returns a call as one line of text: the tool with its command, pattern and path, or if it has none of these
// with its arguments.
func CallText(tool string, arguments json.RawMessage) string {
	words := []string{
		argument.FirstText(arguments, "command", "cmd"), argument.FirstText(arguments, "pattern"), argument.Path(arguments),
	}
	text := strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), " ")
	if text == "" {
		text = strings.TrimPrefix(compact(arguments), "{}")
	}
	return display.Line(strings.TrimSpace(tool + " " + text))
}

// compact returns JSON without white space, or what is no JSON as it is.
func compact(text json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, text) != nil {
		return string(text)
	}
	return b.String()
}
