package message

import "strconv"

// EncodeReturn encodes a return of NewToolReturn but for its number, which the
// journal gives late: the function that it returns adds that. A return holds its
// text three times and its output twice, which may be megabytes; they are escaped
// once and copied. The value is that of Encode, its fields come in another order.
//
// When the function is called again, what it returned before changes.
func EncodeReturn(r ToolReturn) func(seq int64) []byte {
	head := encodeHead(r)
	room := 3*len(r.Result) + 2*(length(r.Stdout)+length(r.Stderr))
	b := make([]byte, 0, len(head)+room+room/16+1024) // some bytes of text are two or six of JSON
	b = append(b, head[:len(head)-1]...)
	text := len(b) + len(`,"tool_return":`)
	b = appendString(append(b, `,"tool_return":`...), r.Result)
	result := b[text:]
	b = appendStrings(append(b, `,"stdout":`...), r.Stdout)
	b = appendStrings(append(b, `,"stderr":`...), r.Stderr)
	mirror := b[text-len(`"tool_return":`):]
	b = append(append(b, `,"result":`...), result...)
	b = appendString(append(b, `,"tool_returns":[{"type":"tool","tool_call_id":`...), r.CallID)
	b = appendString(append(b, `,"status":`...), r.Status)
	b = append(append(append(b, ','), mirror...), `}],"seq_id":`...)
	return func(seq int64) []byte { return append(strconv.AppendInt(b, seq, 10), '}') }
}

// length is of all texts together.
func length(list []string) (n int) {
	for _, s := range list {
		n += len(s)
	}
	return n
}

// encodeHead encodes a return without what EncodeReturn adds.
func encodeHead(r ToolReturn) []byte {
	type whole ToolReturn
	head, err := Encode(struct {
		whole
		Result      *int `json:"result,omitempty"` // these take the places of those of whole
		ToolReturn  *int `json:"tool_return,omitempty"`
		Stdout      *int `json:"stdout,omitempty"`
		Stderr      *int `json:"stderr,omitempty"`
		ToolReturns *int `json:"tool_returns,omitempty"`
		SeqID       *int `json:"seq_id,omitempty"`
	}{whole: whole(r)})
	if err != nil {
		return []byte(`{"message_type":"tool_return_message"}`) // it has no field that could fail
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
