package journal

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/toold/toold/internal/journal/chain"
)

// CallQuery selects calls. Empty fields select all.
type CallQuery struct {
	After, Before Key // exclusive
	Since         time.Time
	ID            string
	Agent         string // agent_id, or the name of the client
	Workspace     string // canonical
	Tool          string // canonical name
	Action        string // "allow", "ask" or "deny"
	Asked         bool   // only calls that a person had to decide
	// Text selects calls whose recorded arguments or return contain it, or whose tool's name it contains. Callers
	// check further.
	Text      string
	Limit     int  // 0 = 100
	Ascending bool // oldest first; default: latest first
}

// Select returns the calls that a query selects, with Arguments. With an error it returns the readable calls.
func (j *Journal) Select(ctx context.Context, q CallQuery) ([]Record, error) {
	limit := 100
	if q.Limit > 0 {
		limit = q.Limit
	}
	scan := q.scan(j.index, cAgent)
	fits := func(r *Record) bool { return q.Fits(r) && (scan.text == nil || scan.text.fits(r)) }
	list, err := j.recordsWithArguments(ctx, scan, limit, fits)
	if q.Agent == "" {
		return list, err
	}
	more, failed := j.recordsWithArguments(ctx, q.scan(j.index, cClient), limit, fits)
	list = append(list, more...)
	slices.SortFunc(list, func(a, b Record) int {
		if q.Ascending {
			return cmp.Compare(a.Key, b.Key)
		}
		return cmp.Compare(b.Key, a.Key)
	})
	list = slices.CompactFunc(list, func(a, b Record) bool { return a.Key == b.Key }) // of both names
	return list[:min(len(list), limit)], cmp.Or(err, failed)
}

// scan looks for q.Agent in a column.
func (q *CallQuery) scan(x *index, agent int) callScan {
	s := callScan{between: between{int64(q.After), int64(q.Before)}, ascending: q.Ascending}
	if !q.Since.IsZero() {
		s.since = q.Since.UnixNano()
	}
	add := func(to *[]condition, column int, text string) {
		if text != "" {
			*to = append(*to, x.equals(column, text)...)
		}
	}
	add(&s.static, cID, q.ID)
	add(&s.static, agent, q.Agent)
	add(&s.static, cWorkspace, q.Workspace)
	add(&s.changing, cTool, q.Tool)
	add(&s.changing, cAction, q.Action)
	if q.Asked {
		s.changing = append(s.changing, flags(wasAsked, 0)...)
	}
	if q.Text != "" {
		s.text = newTextSearch(q.Text, x.hash)
	}
	return s
}

type textSearch struct {
	text  string
	names map[uint32]bool // names of tools that are in text
}

func newTextSearch(text string, hash hasher) *textSearch {
	s := &textSearch{text, map[uint32]bool{hash.name(""): true}}
	for i := range len(text) {
		for end := i + 1; end <= min(len(text), i+longName); end++ {
			s.names[hash.name(text[i:end])] = true
		}
	}
	if len(text) > longName {
		s.names[hash.name(text)] = true
	}
	return s
}

func (s *textSearch) in(text []byte) bool { return contains(text, s.text) }

// Mentions reports whether the arguments of a call contain a text.
func (c *Call) Mentions(text string) bool { return contains(c.Arguments, text) }

// contains reports whether JSON contains a text, literally or in a string with escapes.
func contains(body []byte, text string) bool {
	return bytes.Contains(body, []byte(text)) || bytes.IndexByte(body, '\\') >= 0 && bytes.Contains(unescaped(body), []byte(text))
}

// unescaped decodes the escapes of JSON strings.
func unescaped(text []byte) []byte {
	plain := make([]byte, 0, len(text))
	for {
		at := bytes.IndexByte(text, '\\')
		if at < 0 || at+1 == len(text) {
			return append(plain, text...)
		}
		plain, text = append(plain, text[:at]...), text[at:]
		size := 2
		switch c := text[1]; c {
		case 'b', 'f', 'n', 'r', 't':
			plain = append(plain, "\b\f\n\r\t"[strings.IndexByte("bfnrt", c)])
		case 'u':
			r := unit(text)
			if pair := utf16.DecodeRune(r, unit(text[min(6, len(text)):])); pair != utf8.RuneError {
				plain, size = utf8.AppendRune(plain, pair), 12
			} else if r >= 0 {
				plain, size = utf8.AppendRune(plain, r), 6
			} else {
				plain = append(plain, text[:2]...)
			}
		default:
			plain = append(plain, c)
		}
		text = text[size:]
	}
}

// unit returns the UTF-16 code unit of the \u escape at the beginning of a text, or -1.
func unit(text []byte) rune {
	if len(text) < 6 || string(text[:2]) != `\u` {
		return -1
	}
	n, err := strconv.ParseUint(string(text[2:6]), 16, 16)
	if err != nil {
		return -1
	}
	return rune(n)
}

func (s *textSearch) fits(r *Record) bool {
	return s.in(r.Arguments) || s.in(r.Result) || strings.Contains(s.text, r.Tool)
}

// search marks in has the calls with the text in a record of a chunk.
func (s *textSearch) search(v *view, c *summary, has map[Key]bool) error {
	return v.log.Each(c.first.Segment, c.first.Offset, c.last.Number, func(rec chain.Record) error {
		if rec.Kind != kindCall && rec.Kind != kindReturn || !s.in(rec.Body) {
			return nil
		}
		e, err := decodeRecord(rec, v.x.texts)
		if err != nil {
			return err
		}
		switch e := e.(type) {
		case *callEvent:
			has[Key(e.key)] = s.in(e.call.Arguments) || e.answer != nil && s.in(e.answer.body)
		case *returnEvent:
			has[Key(e.key)] = has[Key(e.key)] || s.in(e.body)
		}
		return nil
	})
}

// choose returns the calls of a chunk that contain the text. It reads whole calls if some of their texts are outside
// the chunk.
func (s *textSearch) choose(v *view, c *summary, found []foundCall) ([]foundCall, error) {
	has, within := map[Key]bool{}, false
	for _, f := range found {
		if !f.apart {
			within = true
			continue
		}
		r, err := v.record(f.key)
		if err != nil && !v.skips(err) {
			return nil, err
		}
		has[f.key] = err == nil && s.fits(&r)
	}
	if within {
		if err := s.search(v, c, has); err != nil && !v.skips(err) {
			return nil, fmt.Errorf("cannot look for a text: %w", err)
		}
	}
	kept := found[:0]
	for _, f := range found {
		if f.named || has[f.key] {
			kept = append(kept, f)
		}
	}
	return kept, nil
}
