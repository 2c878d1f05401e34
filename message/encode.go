package message

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/toold/toold/internal/strict"
)

// Encode returns v as one line of JSON without escapes for <, > and &.
func Encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("cannot encode a frame: %v", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// AppendFrame appends d as a frame with data to dst, in data_b64 if it is not UTF-8. It ignores d.Data and d.DataB64.
// The value is the same as that of Encode, but AppendFrame is faster.
func (d OutputDelta) AppendFrame(dst, data []byte) []byte {
	dst = append(dst, `{"message_type":"tool_output_delta","tool_call_id":`...)
	dst = appendString(dst, d.CallID)
	if d.AgentID != "" {
		dst = append(dst, `,"agent_id":`...)
		dst = appendString(dst, d.AgentID)
	}
	dst = append(dst, `,"stream":`...)
	dst = appendString(dst, d.Stream)
	dst = append(dst, `,"offset":`...)
	dst = strconv.AppendInt(dst, d.Offset, 10)
	switch {
	case len(data) == 0:
	case utf8.Valid(data):
		dst = append(dst, `,"data":`...)
		dst = appendString(dst, data)
	default:
		dst = append(dst, `,"data_b64":"`...)
		dst = base64.StdEncoding.AppendEncode(dst, data)
		dst = append(dst, '"')
	}
	dst = append(dst, `,"event_seq":`...)
	dst = strconv.AppendInt(dst, d.EventSeq, 10)
	if d.Gap != nil {
		dst = append(dst, `,"gap":{"from":`...)
		dst = strconv.AppendInt(dst, d.Gap.From, 10)
		dst = append(dst, `,"to":`...)
		dst = strconv.AppendInt(dst, d.Gap.To, 10)
		dst = append(dst, '}')
	}
	return append(dst, '}')
}

// appendString appends s as a JSON string. Invalid UTF-8 becomes U+FFFD.
func appendString[T []byte | string](dst []byte, s T) []byte {
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		if i += strict.Plain(s[i:]); i == len(s) {
			break
		}
		if c := s[i]; c < utf8.RuneSelf {
			if c < ' ' || c == '"' || c == '\\' {
				dst = appendEscape(append(dst, s[start:i]...), c)
				start = i + 1
			}
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(string(s[i:min(i+utf8.UTFMax, len(s))]))
		if r == utf8.RuneError && n == 1 {
			dst = append(append(dst, s[start:i]...), "\ufffd"...)
			start = i + 1
		}
		i += n
	}
	return append(append(dst, s[start:]...), '"')
}

func appendEscape(dst []byte, c byte) []byte {
	const hex = "0123456789abcdef"
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\n':
		return append(dst, '\\', 'n')
	case '\r':
		return append(dst, '\\', 'r')
	case '\t':
		return append(dst, '\\', 't')
	}
	return append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
}

// NewID returns prefix, a hyphen and a UUID version 7 (RFC 9562), without the hyphen if prefix is "". Ids sort by
// time, so that new entries of an index are adjacent.
func NewID(prefix string) string {
	var u [16]byte
	rand.Read(u[6:]) // never fails (crypto/rand)
	ms := time.Now().UnixMilli()
	for i := range 6 {
		u[i] = byte(ms >> (40 - 8*i))
	}
	u[6] = u[6]&0x0f | 0x70
	u[8] = u[8]&0x3f | 0x80
	text := hex.EncodeToString(u[:])
	if prefix != "" {
		prefix += "-"
	}
	return prefix + text[:8] + "-" + text[8:12] + "-" + text[12:16] + "-" + text[16:20] + "-" + text[20:]
}

const binaryHeader = 16

// AppendBinary appends d with data to dst as a binary frame, which clients request in hello.
//
// The header has 16 bytes, big endian: channel (4, from tool_started), stream (1: 1 stdout, 2 stderr), zeros (3),
// offset of the first byte of data (8). An offset beyond the end of the previous frame is a gap.
func (d OutputDelta) AppendBinary(dst []byte, channel uint32, data []byte) []byte {
	stream := uint32(1)
	if d.Stream == "stderr" {
		stream = 2
	}
	dst = binary.BigEndian.AppendUint32(dst, channel)
	dst = binary.BigEndian.AppendUint32(dst, stream<<24)
	dst = binary.BigEndian.AppendUint64(dst, uint64(d.Offset))
	return append(dst, data...)
}

// ParseBinary sets Stream and Offset from a binary frame. data refers to the memory of frame.
func (d *OutputDelta) ParseBinary(frame []byte) (channel uint32, data []byte, err error) {
	if len(frame) < binaryHeader {
		return 0, nil, errors.New("the binary frame is shorter than its header")
	}
	channel = binary.BigEndian.Uint32(frame)
	d.Stream, d.Offset = "stdout", int64(binary.BigEndian.Uint64(frame[8:]))
	switch stream := binary.BigEndian.Uint32(frame[4:]); {
	case channel == 0 || d.Offset < 0:
		return 0, nil, errors.New("the binary frame names no offset in a stream")
	case stream == 2<<24:
		d.Stream = "stderr"
	case stream != 1<<24:
		return 0, nil, errors.New("the binary frame names no stream")
	}
	return channel, frame[binaryHeader:], nil
}
