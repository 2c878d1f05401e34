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
