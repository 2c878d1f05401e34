package message

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestBinaryOutputSurvivesTheWire(t *testing.T) {
	for _, c := range []struct {
		channel uint32
		delta   OutputDelta
		data    []byte
	}{
		{1, OutputDelta{Stream: "stdout"}, []byte("hello\n")},
		{1<<32 - 1, OutputDelta{Stream: "stderr", Offset: 1 << 40}, []byte{0, 0xff}},
	} {
		frame := c.delta.AppendBinary(nil, c.channel, c.data)
		if len(frame) != 16+len(c.data) {
			t.Errorf("the frame has %d bytes", len(frame))
		}
		var got OutputDelta
		channel, data, err := got.ParseBinary(frame)
		if err != nil || channel != c.channel || !cmp.Equal(got, c.delta) || string(data) != string(c.data) {
			t.Errorf("got %d %+v %q, %v; want %+v", channel, got, data, err, c)
		}
	}
}

func TestABinaryFrameOfNoStreamIsRefused(t *testing.T) {
	for name, frame := range map[string][]byte{
		"it is short":        make([]byte, 15),
		"its channel is 0":   OutputDelta{Stream: "stdout"}.AppendBinary(nil, 0, nil),
		"its offset is -1":   OutputDelta{Stream: "stdout", Offset: -1}.AppendBinary(nil, 1, nil),
		"its stream is 0":    append([]byte{0, 0, 0, 1, 0}, make([]byte, 11)...),
		"its stream is 3":    append([]byte{0, 0, 0, 1, 3}, make([]byte, 11)...),
		"its zeros are none": append([]byte{0, 0, 0, 1, 1, 1}, make([]byte, 10)...),
	} {
		var d OutputDelta
		if channel, _, err := d.ParseBinary(frame); err == nil {
			t.Errorf("%s, and it is read as %+v of channel %d", name, d, channel)
		}
	}
}

func FuzzParseBinary(f *testing.F) {
	f.Add(OutputDelta{Stream: "stderr", Offset: 7}.AppendBinary(nil, 1, []byte("x")))
	f.Add([]byte("short"))
	f.Fuzz(func(t *testing.T, frame []byte) {
		var d OutputDelta
		channel, data, err := d.ParseBinary(frame)
		if err == nil && !cmp.Equal(d.AppendBinary(nil, channel, data), frame) {
			t.Errorf("%x was read as %d %+v %q", frame, channel, d, data)
		}
	})
}
