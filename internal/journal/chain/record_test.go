package chain

import (
	"bytes"
	"testing"
	"time"
)

// FuzzScan: whatever is in a file, only what was encoded as a record is one, and it is
// encoded to the same bytes again.
func FuzzScan(f *testing.F) {
	one, hash := appendRecord(nil, Mark{}, 'a', time.Unix(1, 2), []byte("body"))
	two, _ := appendRecord(one, Mark{Number: 1, Hash: hash}, 'b', time.Unix(3, 4), nil)
	f.Add([]byte{})
	f.Add(one)
	f.Add(two)
	f.Add(two[:len(two)-1])
	f.Add(bytes.Repeat([]byte{0}, 100))
	f.Add(bytes.Repeat([]byte{0xff}, 100))
	f.Fuzz(func(t *testing.T, p []byte) {
		s := scan(bytes.NewReader(p), Mark{}, int64(len(p)))
		var again []byte
		var before Mark
		for {
			r, err := s.next()
			if err != nil {
				break
			}
			var h Hash
			if again, h = appendRecord(again, before, r.Kind, r.Time, r.Body); h != r.Hash {
				t.Fatalf("record %d has another hash", r.Number)
			}
			before = r.Mark
		}
		if !bytes.HasPrefix(p, again) {
			t.Fatalf("%d bytes of records are not those of the file", len(again))
		}
	})
}

// FuzzNote: what is read as a note is written the same.
func FuzzNote(f *testing.F) {
	f.Add(string(noteText(Mark{})))
	f.Add(string(noteText(Mark{Number: 7, Segment: 2, Offset: 900, Hash: Hash{1, 2, 3}})))
	f.Fuzz(func(t *testing.T, text string) {
		if m, ok := parseNote(text); ok && string(noteText(m)) != text {
			t.Fatalf("%q is %v", text, m)
		}
	})
}
