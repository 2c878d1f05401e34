package journal

import (
	"fmt"
	"strings"
	"time"

	"github.com/toold/toold/internal/journal/chain"
)

// touched names the call of a damaged record, and the calls that have later records.
func (v *verification) touched(f *files, at chain.Mark) string {
	if at.Segment == 0 {
		return ""
	}
	t := touched{names: map[Key]string{}}
	if err := chain.Salvage(f.log, at, func(rec chain.Record) { t.add(rec, at, v.lost) }); err != nil {
		return fmt.Sprintf("; what follows it cannot be read: %v", err)
	}
	// The calls may have been received before. This ends where the log is damaged.
	_, _, _ = chain.Verify(f.options(func(rec chain.Record) error {
		if e, is := newEvent(rec.Kind).(*callEvent); is {
			_ = decode(rec.Body, e, unread)
			t.name(e, rec.Time)
		}
		return nil
	}))
	return t.String()
}

// unread leaves out a blob.
func unread(chain.Hash, int64) ([]byte, error) { return nil, nil }

type touched struct {
	first Key
	later []Key
	names map[Key]string // "" while unknown
}

// add notes the call of a salvaged record. With one, only the record at at is damaged.
func (t *touched) add(rec chain.Record, at chain.Mark, one bool) {
	isFirst := rec.Segment == at.Segment && rec.Offset == at.Offset
	e := newEvent(rec.Kind)
	if e == nil || one && !isFirst {
		return
	}
	_ = decode(rec.Body, e, unread) // as far as possible
	k := callOf(e)
	call, is := e.(*callEvent)
	if is {
		k = Key(call.key)
	}
	if _, known := t.names[k]; k == 0 || known {
		return
	}
	if t.names[k] = ""; is {
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

const touchedMost = 20 // named calls

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
