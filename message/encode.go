package message

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// Encode returns v as one line of JSON. Unlike json.Marshal it leaves <, > and
// & as they are: shell commands are full of them, and a frame is no web page.
func Encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("cannot encode a frame: %v", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// AppendDelta appends the frame of a piece of live output to dst: as data when
// the bytes are valid UTF-8, else as data_b64. The Data and DataB64 of d are
// ignored. It writes JSON by hand since it is called for every piece that a
// command prints, and makes the same value as Encode.
func AppendDelta(dst []byte, d OutputDelta, data []byte) []byte {
	dst = append(dst, `{"message_type":"tool_output_delta","tool_call_id":`...)
	dst = appendString(dst, d.CallID)
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

// appendString appends s as a JSON string, copying whole runs of bytes that
// need no escape. Invalid UTF-8 becomes U+FFFD, as in encoding/json.
func appendString[T []byte | string](dst []byte, s T) []byte {
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
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
