package message

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestBinaryOutputSurvivesTheWire(t *testing.T) {
	for _, want := range []BinaryOutput{
		{Channel: 1, Stream: "stdout", Data: []byte("hello\n")},
		{Channel: 1<<32 - 1, Stream: "stderr", Offset: 1 << 40, Data: []byte{0, 0xff}},
	} {
		frame := want.AppendBinary(nil)
		if len(frame) != 16+len(want.Data) {
			t.Errorf("the frame has %d bytes", len(frame))
		}
		got, err := ParseBinary(frame)
		if err != nil || !cmp.Equal(got, want) {
			t.Errorf("got %+v, %v; want %+v", got, err, want)
		}
	}
}

func FuzzParseBinary(f *testing.F) {
	f.Add(BinaryOutput{Channel: 1, Stream: "stderr", Offset: 7, Data: []byte("x")}.AppendBinary(nil))
	f.Add([]byte("short"))
	f.Fuzz(func(t *testing.T, frame []byte) {
		o, err := ParseBinary(frame)
		if err == nil && !cmp.Equal(o.AppendBinary(nil), frame) {
			t.Errorf("%x was read as %+v", frame, o)
		}
	})
}
