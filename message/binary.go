package message

import (
	"encoding/binary"
	"errors"
)

const binaryHeader = 16

// AppendBinary appends d with data to dst as a binary frame, requested in hello.
//
// The header has 16 bytes, big endian: channel (4, from tool_started), stream (1: 1 stdout, 2
// stderr), zeros (3), offset of the first data byte (8). An offset beyond the previous end marks a
// gap.
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

// ParseBinary sets Stream and Offset from a binary frame, which data aliases.
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
