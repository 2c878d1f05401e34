package codex

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/spool"
)

// A client that reads nothing makes the daemon remember no more than a part of where the
// output is, and gets all of it when it reads.
func TestOutputThatIsNotReadIsNotRemembered(t *testing.T) {
	t.Parallel()
	capture := spool.NewCapture(spool.Options{Keep: 1 << 20})
	p := &process{
		session: &session{}, id: "1", running: true, capture: capture,
		changed: make(chan struct{}),
	}
	p.announced.Store(true)
	var want [2]bytes.Buffer
	for i := range 20 * maxChunks {
		s := tools.Stream(i % 2)
		capture.Write(s, []byte{byte('a' + i%26)})
		want[s].WriteByte(byte('a' + i%26))
		if i%1000 == 0 {
			p.assignNumbers()
		}
	}
	p.assignNumbers()
	if n := len(p.chunks); n > 2*maxChunks {
		t.Errorf("%d chunks are remembered", n)
	}
	var got [2]bytes.Buffer
	for seq := uint64(1); ; seq++ {
		frame := p.nextFrame()
		if frame == nil {
			break
		}
		var f struct{ Params outputParams }
		if err := json.Unmarshal(frame, &f); err != nil || f.Params.Seq != seq {
			t.Fatalf("frame %d: %s, %v", seq, frame, err)
		}
		s := tools.Stdout
		if f.Params.Stream == tools.Stderr.String() {
			s = tools.Stderr
		}
		got[s].Write(f.Params.Chunk)
	}
	if n := len(p.chunks); n > 2*maxChunks {
		t.Errorf("%d chunks are remembered in the end", n)
	}
	for s := range got {
		if !bytes.Equal(got[s].Bytes(), want[s].Bytes()) {
			t.Errorf("%s: got %d bytes of %d", tools.Stream(s), got[s].Len(), want[s].Len())
		}
	}
}
