package message

import (
	"bytes"
	"encoding/json"
	"strconv"
)

// encodedReturn is a return as JSON without its number, which the journal assigns
// later. A return contains its text three times and its output twice, which may be
// megabytes; they are escaped once and copied.
type encodedReturn struct {
	text  []byte // up to the number's value
	plain int    // start of the fields that only mirror others
}

const (
	returnBegins = `{"message_type":"tool_return_message",`
	mirrorBegins = `,"result":`
	numberBegins = `,"seq_id":`
)

// Encode encodes a return of Complete.
func (r ToolReturn) Encode() encodedReturn {
	head := encodeHead(r)
	room := 3*len(r.Result) + 2*(length(r.Stdout)+length(r.Stderr))
	b := make([]byte, 0, len(head)+room+room/16+1024) // some bytes of text are two or six of JSON
	b = append(b, head[:len(head)-1]...)
	text := len(b) + len(`,"tool_return":`)
	b = appendString(append(b, `,"tool_return":`...), r.Result)
	result := b[text:]
	b = appendStrings(append(b, `,"stdout":`...), r.Stdout)
	b = appendStrings(append(b, `,"stderr":`...), r.Stderr)
	mirrored, plain := b[text-len(`"tool_return":`):], len(b)
	b = append(append(b, mirrorBegins...), result...)
	b = appendString(append(b, `,"tool_returns":[{"type":"tool","tool_call_id":`...), r.CallID)
	b = appendString(append(b, `,"status":`...), r.Status)
	b = append(append(append(b, ','), mirrored...), "}]"+numberBegins...)
	return encodedReturn{b, plain}
}

// Frame returns the frame with its number, the same value as the function Encode.
// The next call overwrites it.
func (e encodedReturn) Frame(seq int64) []byte {
	return append(strconv.AppendInt(e.text, seq, 10), '}')
}

// Record returns the frame without the fields that mirror others, for the journal.
// Record.Whole restores the frame.
func (e encodedReturn) Record(seq int64) []byte {
	b := append(make([]byte, 0, e.plain+40), e.text[:e.plain]...)
	return append(strconv.AppendInt(append(b, numberBegins...), seq, 10), '}')
}

// A Record is a message as the journal contains it: a return without the fields that
// mirror others, anything else as its frame.
type Record []byte

// Whole returns the frame of a recorded return. It returns anything else unchanged.
func (record Record) Whole() []byte {
	if !bytes.HasPrefix(record, []byte(returnBegins)) || bytes.Contains(record, []byte(mirrorBegins)) {
		return record
	}
	r, err := record.Return()
	if err != nil {
		return record
	}
	return r.Encode().Frame(r.SeqID)
}

// Return decodes a recorded return, or its frame.
func (record Record) Return() (r ToolReturn, err error) {
	short, isFrame := recordOf(record)
	if isFrame {
		record = short
	}
	if err := json.Unmarshal(record, &r); err != nil {
		return ToolReturn{}, err
	}
	if isFrame || r.ToolReturns == nil && r.Result == "" {
		r.mirror()
	}
	return r, nil
}

// recordOf returns a frame without the fields that mirror others, and whether Encode
// made the frame. No text contains the names that it searches: its quotes are escaped.
func recordOf(frame []byte) (record []byte, ok bool) {
	plain := bytes.Index(frame, []byte(mirrorBegins))
	number := bytes.LastIndex(frame, []byte(numberBegins))
	begin := bytes.Index(frame, []byte(`,"tool_return":`))
	if begin < 0 || plain < begin || number < plain {
		return nil, false
	}
	mirrored := frame[begin+1 : plain]
	output := bytes.Index(mirrored, []byte(`,"stdout":`))
	if output < 0 {
		return nil, false
	}
	result, list, found := bytes.Cut(frame[plain+len(mirrorBegins):number], []byte(`,"tool_returns":[{"type":"tool","tool_call_id":`))
	list, closed := bytes.CutSuffix(list, []byte("}]"))
	list, same := bytes.CutSuffix(list, mirrored)
	if !found || !closed || !same || !bytes.HasSuffix(list, []byte(",")) || !bytes.Equal(result, mirrored[len(`"tool_return":`):output]) {
		return nil, false
	}
	return append(append(make([]byte, 0, plain+40), frame[:plain]...), frame[number:]...), true
}

func length(list []string) (n int) {
	for _, s := range list {
		n += len(s)
	}
	return n
}

// encodeHead encodes a return without the fields that Encode appends.
func encodeHead(r ToolReturn) []byte {
	type whole ToolReturn
	head, err := Encode(struct {
		whole
		Result      *int `json:"result,omitempty"` // these hide those of whole
		ToolReturn  *int `json:"tool_return,omitempty"`
		Stdout      *int `json:"stdout,omitempty"`
		Stderr      *int `json:"stderr,omitempty"`
		ToolReturns *int `json:"tool_returns,omitempty"`
		SeqID       *int `json:"seq_id,omitempty"`
	}{whole: whole(r)})
	if err != nil {
		return []byte(`{"message_type":"tool_return_message"}`) // cannot happen
	}
	return head
}

func appendStrings(dst []byte, list []string) []byte {
	dst = append(dst, '[')
	for i, s := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendString(dst, s)
	}
	return append(dst, ']')
}
