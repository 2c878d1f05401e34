package client

import (
	"bytes"
	"encoding/json"

	"github.com/gorilla/websocket"

	"github.com/toold/toold/message"
)

type output struct {
	delta message.OutputDelta
	data  []byte
}

// channel is a call whose output comes in binary frames.
type channel struct {
	callID string
	ends   map[string]int64 // end of the received output, by stream
}

// open decodes a frame. It returns nil for an invalid one.
func (c *Client) open(kind int, raw []byte) *frame {
	if kind == websocket.BinaryMessage {
		return c.openBinary(raw)
	}
	f := openReturn(raw)
	if f == nil {
		f = &frame{}
		if json.Unmarshal(raw, f) != nil {
			return nil
		}
	}
	f.raw = raw
	switch {
	case f.Type == "tool_started" && f.Channel != 0:
		c.channels[f.Channel] = &channel{callID: f.CallID, ends: map[string]int64{}}
	case f.Type == "tool_return_message" || f.Type == backgroundEnded:
		for number, ch := range c.channels {
			if ch.callID == f.CallID {
				delete(c.channels, number)
			}
		}
	}
	return f
}

// openReturn decodes a return, which may be large, in one pass; nil: another frame.
func openReturn(raw []byte) *frame {
	const begin = `{"message_type":"tool_return_message",`
	if !bytes.HasPrefix(raw, []byte(begin)) {
		return nil
	}
	r, err := message.Record(raw).Return()
	if err != nil {
		return nil
	}
	return &frame{Type: r.MessageType, ID: r.ID, CallID: r.CallID, returned: &r}
}

func (c *Client) openBinary(raw []byte) *frame {
	var d message.OutputDelta
	number, data, err := d.ParseBinary(raw)
	ch := c.channels[number]
	if err != nil || ch == nil {
		return nil
	}
	d.CallID = ch.callID
	if end := ch.ends[d.Stream]; d.Offset > end {
		d.Gap = &message.Gap{From: end, To: d.Offset}
	}
	ch.ends[d.Stream] = d.Offset + int64(len(data))
	return &frame{Type: "tool_output_delta", CallID: ch.callID, output: &output{d, data}}
}
