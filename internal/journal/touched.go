package journal

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/toold/toold/internal/journal/chain"
)

// lostText is a blob or output that is not what an intact record says.
type lostText struct {
	call Key // 0: unknown
	at   chain.Mark
	why  string
}

const lostMost = 20 // maximum number of errors

// lostOnes returns an error that lists the lost texts and their calls.
func (v *verification) lostOnes(f *files) (err error) {
	if len(v.lost) == 0 {
		return nil
	}
	t := touched{names: map[Key]string{}}
	shown := v.lost[:min(lostMost, len(v.lost))]
	for _, l := range shown {
		t.names[l.call] = ""
	}
	t.look(f)
	for _, l := range shown {
		t.first = l.call
		err = errors.Join(err, fmt.Errorf("%w: %w%s", ErrTampered, &chain.DamageError{Mark: l.at, Why: l.why}, t.String()))
	}
	if more := len(v.lost) - len(shown); more > 0 {
		err = errors.Join(err, tampered("%d more texts or outputs are lost", more))
	}
	return err
}

// touched returns a sentence that names the call of a damaged record and the calls that have later records.
func (v *verification) touched(f *files, at chain.Mark) string {
	if at.Segment == 0 {
		return ""
	}
	t := touched{names: map[Key]string{}}
	if err := chain.Salvage(f.log, at, func(rec chain.Record) { t.add(rec, at) }); err != nil {
		return fmt.Sprintf("; what follows it cannot be read: %v", err)
	}
	t.look(f)
	return t.String()
}

// look finds the names of the calls received before the damage, which ends the search.
func (t *touched) look(f *files) {
	_, _, _ = chain.Verify(f.options(func(rec chain.Record) error {
		if e, is := newEvent(rec.Kind).(*callEvent); is {
			_ = decode(rec.Body, e, unread)
			t.name(e, rec.Time)
		}
		return nil
	}))
}

// unread skips a blob.
func unread(chain.Hash, int64) ([]byte, error) { return nil, nil }

type touched struct {
	first Key
	later []Key
	names map[Key]string // "" while unknown
}

func keyOf(e event) Key {
	if call, is := e.(*callEvent); is {
		return Key(call.key)
	}
	return callOf(e)
}

func (t *touched) add(rec chain.Record, at chain.Mark) {
	isFirst := rec.Segment == at.Segment && rec.Offset == at.Offset
	e := newEvent(rec.Kind)
	if e == nil {
		return
	}
	_ = decode(rec.Body, e, unread) // as much as possible
	k := keyOf(e)
	if _, known := t.names[k]; k == 0 || known {
		return
	}
	t.names[k] = ""
	if call, is := e.(*callEvent); is {
		t.name(call, rec.Time)
	}
	if isFirst {
		t.first = k
	} else {
		t.later = append(t.later, k)
	}
}

func (t *touched) name(e *callEvent, at time.Time) {
	if name, is := t.names[Key(e.key)]; is && name == "" {
		t.names[Key(e.key)] = fmt.Sprintf("%q of %s", e.call.ID, at.Format(time.RFC3339))
	}
}

const touchedMost = 20 // maximum number of calls in the text

func (t *touched) String() string {
	var s strings.Builder
	if name := t.names[t.first]; name != "" {
		fmt.Fprintf(&s, ". It is of the tool call %s", name)
	}
	n := 0
	for _, k := range t.later {
		if t.names[k] == "" {
			continue
		}
		switch n++; {
		case n == 1:
			s.WriteString(". What is recorded of these calls after it cannot be trusted: ")
		case n <= touchedMost:
			s.WriteString(", ")
		}
		if n <= touchedMost {
			s.WriteString(t.names[k])
		}
	}
	if n > touchedMost {
		fmt.Fprintf(&s, " and %d others", n-touchedMost)
	}
	return s.String()
}
