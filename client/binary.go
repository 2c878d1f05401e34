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

// channel is a call with output in binary frames.
type channel struct {
	callID   string
	agentID  string
	received map[string]int64 // end of the received output, by stream
}

// decodeFrame decodes a frame, and keeps track of output channels. It returns nil for frames to ignore. Only the
// reader may call it.
func (c *Client) decodeFrame(kind int, raw []byte) *frame {
	if kind == websocket.BinaryMessage {
		return c.decodeBinary(raw)
	}
	f := decodeReturn(raw)
	if f == nil {
		f = &frame{}
		if json.Unmarshal(raw, f) != nil {
			return nil
		}
	}
	f.raw = raw
	switch {
	case f.Type == "tool_started" && f.Channel != 0:
		c.channels[f.Channel] = &channel{callID: f.CallID, agentID: f.AgentID, received: map[string]int64{}}
	case f.Type == "tool_return_message" || f.Type == backgroundEnded:
		for number, ch := range c.channels {
			if ch.callID == f.CallID && ch.agentID == f.AgentID {
				delete(c.channels, number)
			}
		}
	}
	return f
}

// decodeReturn decodes a return, which may be large, in one pass. It returns nil for any other frame and if decoding
// fails.
func decodeReturn(raw []byte) *frame {
	const begin = `{"message_type":"tool_return_message",`
	if !bytes.HasPrefix(raw, []byte(begin)) {
		return nil
	}
	r, err := message.Record(raw).Return()
	if err != nil {
		return nil
	}
	return &frame{Type: r.MessageType, ID: r.ID, CallID: r.CallID, AgentID: r.AgentID, returned: &r}
}

func (c *Client) decodeBinary(raw []byte) *frame {
	var d message.OutputDelta
	number, data, err := d.ParseBinary(raw)
	ch := c.channels[number]
	if err != nil || ch == nil {
		return nil
	}
	d.CallID, d.AgentID = ch.callID, ch.agentID
	if end := ch.received[d.Stream]; d.Offset > end {
		d.Gap = &message.Gap{From: end, To: d.Offset}
	}
	ch.received[d.Stream] = d.Offset + int64(len(data))
	return &frame{Type: "tool_output_delta", CallID: ch.callID, AgentID: ch.agentID, output: &output{d, data}}
}
