package journal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toold/toold/internal/journal/seal"
	"github.com/toold/toold/internal/must"
)

// segments opens files with segments of a size.
func smallSegments(size int64) func(string) (files, error) {
	return func(dir string) (files, error) {
		f, err := openFiles(dir)
		f.segment = size
		return f, err
	}
}

func note(t *testing.T, j *Journal, n int) {
	t.Helper()
	for range n {
		must.Get(j.Append(Message{Type: "user_message", Direction: In, Body: []byte("{}")}))(t)
	}
}

func verified(t *testing.T, dir string) Report {
	t.Helper()
	c := must.Get(Verify(t.Context(), dir, seal.Checks{}, nil))(t)
	return c
}

// TestCheckpointsComeByThemselves behind many records, in a new segment and at the end, and
// only from a process that has recorded something.
func TestCheckpointsComeByThemselves(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j, err := open(t.Context(), dir, Self(), smallSegments(64<<10))
	must.Do(t, err)
	note(t, j, 10)
	j.checkpointWhenDue()
	if c := verified(t, dir); c.Count != 0 {
		t.Errorf("after 10 records: %+v", c)
	}
	for j.write.end().Segment < 2 {
		note(t, j, 10)
	}
	j.checkpointWhenDue()
	j.checkpointWhenDue()
	c := verified(t, dir)
	if c.Count == 0 || c.Signed != c.Number-1 {
		t.Errorf("in the second segment: %+v", c)
	}
	note(t, j, 3)
	must.Do(t, j.Close())
	end := verified(t, dir)
	if end.Signed != end.Number-1 || end.Number != c.Number+4 {
		t.Errorf("at the end: %+v", end)
	}
	if j, err = open(t.Context(), dir, Self(), openFiles); err != nil {
		t.Fatal(err)
	}
	must.Do(t, j.Close())
	if now := verified(t, dir); now.Number != end.Number {
		t.Errorf("a reader: %+v", now)
	}
}

// TestAForgedCheckpointIsFound in a chain that fits.
func TestAForgedCheckpointIsFound(t *testing.T) {
	t.Parallel()
	for name, forge := range map[string]func(*checkpointEvent){
		"signature": func(e *checkpointEvent) { e.signature[0] ^= 1 },
		"key":       func(e *checkpointEvent) { e.key[0] ^= 1 },
		"no key":    func(e *checkpointEvent) { e.key = nil },
		"cut off":   func(e *checkpointEvent) { e.signature = e.signature[:10] },
	} {
		dir := t.TempDir()
		j, err := open(t.Context(), dir, Self(), openFiles)
		must.Do(t, err)
		note(t, j, 3)
		err = j.write.record(synced, func(b *batch) error {
			c := j.key.Checkpoint("", b.log.Last().Number, b.log.Last().Hash, b.log.Time())
			e := &checkpointEvent{key: c.Key, signature: c.Signature}
			forge(e)
			return b.append(kindCheckpoint, e)
		})
		must.Do(t, errors.Join(err, j.Close()))
		if _, err := Verify(t.Context(), dir, seal.Checks{}, nil); !errors.Is(err, ErrTampered) || !strings.Contains(fmt.Sprint(err), "was not signed by the key") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// BenchmarkCheckpoint is what one costs beside the record of a message.
func BenchmarkCheckpoint(b *testing.B) {
	j := must.Get(open(b.Context(), b.TempDir(), Self(), openFiles))(b)
	defer j.Close()
	b.Run("message", func(b *testing.B) {
		for b.Loop() {
			must.Get(j.Append(Message{Type: "user_message", Direction: In, Body: []byte("{}")}))(b)
		}
	})
	b.Run("checkpoint", func(b *testing.B) {
		for b.Loop() {
			must.Get(j.checkpoint(soon))(b)
		}
	})
}

func TestALinkToNothingIsNoNote(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := must.Get(open(t.Context(), dir, Self(), smallSegments(64<<10)))(t)
	note(t, j, 10)
	must.Do(t, j.Close())
	name := filepath.Join(notesDir(dir), noteName)
	must.Do(t, errors.Join(os.Rename(name, name+".moved"), os.Symlink(name+".elsewhere", name)))
	if _, err := Verify(t.Context(), dir, seal.Checks{}, nil); !errors.Is(err, ErrTampered) {
		t.Errorf("the note is a link to nothing: %v", err)
	}
}

// TestALinkToNothingIsNoSegment, and none that was removed meanwhile: that is looked for again.
func TestALinkToNothingIsNoSegment(t *testing.T) {
	t.Parallel()
	for _, segment := range []string{"00000001.log", "00000002.log", "00000003.log"} {
		dir := t.TempDir()
		j := must.Get(open(t.Context(), dir, Self(), smallSegments(64<<10)))(t)
		for j.write.end().Segment < 3 {
			note(t, j, 10)
		}
		must.Do(t, j.Close())
		name := filepath.Join(logDir(dir), segment)
		must.Do(t, errors.Join(os.Rename(name, name+".moved"), os.Symlink(name+".elsewhere", name)))
		if _, err := Verify(t.Context(), dir, seal.Checks{}, nil); !errors.Is(err, ErrTampered) || !strings.Contains(err.Error(), "link") {
			t.Errorf("%s is a link to nothing: %v", segment, err)
		}
		if _, err := Accept(dir); err == nil {
			t.Errorf("%s is a link to nothing, and accepted", segment)
		}
	}
}
