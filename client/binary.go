package client

import (
	"bytes"
	"encoding/json"

	"github.com/gorilla/websocket"

	"github.com/toold/toold/message"
)

// output is a piece of live output as Events.Output gets it.
type output struct {
	delta message.OutputDelta
	data  []byte
}

// channel is a call whose output comes in binary frames. Only the reader uses it.
type channel struct {
	callID string
	ends   map[string]int64 // by stream, of what has come
}

// open reads a frame. It returns nil for one that nobody can have asked for.
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

// openReturn reads the return of a call as the daemon writes it. It is nil for all
// else. A return can be large, so it is read only once.
func openReturn(raw []byte) *frame {
	const begin = `{"message_type":"tool_return_message",`
	if !bytes.HasPrefix(raw, []byte(begin)) {
		return nil
	}
	r, err := message.DecodeReturn(raw)
	if err != nil {
		return nil
	}
	return &frame{Type: r.MessageType, ID: r.ID, CallID: r.CallID, returned: &r}
}

// openBinary turns a binary frame into the delta that it stands for.
func (c *Client) openBinary(raw []byte) *frame {
	o, err := message.ParseBinary(raw)
	ch := c.channels[o.Channel]
	if err != nil || ch == nil {
		return nil
	}
	d := message.OutputDelta{CallID: ch.callID, Stream: o.Stream, Offset: o.Offset}
	if end := ch.ends[o.Stream]; o.Offset > end {
		d.Gap = &message.Gap{From: end, To: o.Offset}
	}
	ch.ends[o.Stream] = o.Offset + int64(len(o.Data))
	return &frame{Type: "tool_output_delta", CallID: ch.callID, output: &output{d, o.Data}}
}
