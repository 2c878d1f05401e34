package message

import (
	"encoding/binary"
	"errors"
)

// binaryHeader is the length of the header of a binary frame of output.
const binaryHeader = 16

// BinaryOutput is a piece of live output in a binary frame, for clients that
// requested it in their hello.
//
// The header has 16 bytes, big endian: the channel (4 bytes, as tool_started
// named it), the stream (1 byte: 1 stdout, 2 stderr), 3 bytes of zero, and the
// offset of the first byte in its stream (8 bytes). The rest is data. An offset
// beyond the end of the last piece marks a gap.
type BinaryOutput struct {
	Channel uint32
	Stream  string
	Offset  int64
	Data    []byte
}

// AppendBinary appends the frame to dst.
func (o BinaryOutput) AppendBinary(dst []byte) []byte {
	stream := uint32(1)
	if o.Stream == "stderr" {
		stream = 2
	}
	dst = binary.BigEndian.AppendUint32(dst, o.Channel)
	dst = binary.BigEndian.AppendUint32(dst, stream<<24)
	dst = binary.BigEndian.AppendUint64(dst, uint64(o.Offset))
	return append(dst, o.Data...)
}

// ParseBinary reads a binary frame. Data aliases it.
func ParseBinary(frame []byte) (BinaryOutput, error) {
	if len(frame) < binaryHeader {
		return BinaryOutput{}, errors.New("the binary frame is shorter than its header")
	}
	o := BinaryOutput{
		Channel: binary.BigEndian.Uint32(frame), Stream: "stdout",
		Offset: int64(binary.BigEndian.Uint64(frame[8:])), Data: frame[binaryHeader:],
	}
	switch stream := binary.BigEndian.Uint32(frame[4:]); {
	case o.Channel == 0 || o.Offset < 0:
		return BinaryOutput{}, errors.New("the binary frame names no offset in a stream")
	case stream == 2<<24:
		o.Stream = "stderr"
	case stream != 1<<24:
		return BinaryOutput{}, errors.New("the binary frame names no stream")
	}
	return o, nil
}
