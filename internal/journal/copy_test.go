package journal

import (
	"bytes"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"testing"

	"github.com/toold/toold/internal/journal/chain"
	"github.com/toold/toold/internal/journal/seal"
	"github.com/toold/toold/internal/must"
)

// copies is a store in memory.
type copies struct {
	at    chain.Mark
	parts map[uint32][]byte
	texts map[chain.Hash][]byte
}

func (c *copies) read(segment uint32, text *chain.Hash) ([]byte, error) {
	if text == nil {
		return c.parts[segment], nil
	}
	if text, is := c.texts[*text]; is {
		return text, nil
	}
	return nil, fs.ErrNotExist
}

// take copies all that a journal has, a few records at a time.
func (c *copies) take(t *testing.T, j *Journal) {
	t.Helper()
	for c.some(t, j) > 0 {
	}
}

func (c *copies) some(t *testing.T, j *Journal) (left uint64) {
	t.Helper()
	list, left, err := j.Copy(c.at, 3, 10_000)
	must.Do(t, err)
	for _, r := range list {
		if begins := int64(len(c.parts[r.Segment])); begins != r.Offset {
			t.Fatalf("record %d is copied to %d and is at %d", r.Number, begins, r.Offset)
		}
		c.parts[r.Segment] = append(c.parts[r.Segment], r.Text...)
		maps.Copy(c.texts, r.Beside)
		c.at = r.Mark
	}
	return left
}

func (c *copies) verify(t *testing.T) error {
	_, err := VerifyCopy(t.Context(), chain.Copy{Segments: slices.Sorted(maps.Keys(c.parts)), Read: c.read}, c.at, seal.Checks{})
	return err
}

// A copy of a journal, made while parts of it are removed, verifies as the journal does, and
// what it lacks is not removed.
func TestACopyIsWholeAndVerifies(t *testing.T) {
	must.Long(t)
	t.Parallel()
	dir := t.TempDir()
	j, _ := openFaulty(t, dir)
	j.Hold(1)
	lived(t, j, "first", 40)
	if n := removeAll(t, j); n != 0 {
		t.Fatalf("%d parts were removed that are nowhere else", n)
	}
	c := &copies{parts: map[uint32][]byte{}, texts: map[chain.Hash][]byte{}}
	c.some(t, j)
	early := c.at
	c.take(t, j)
	if j.Hold(c.at.Segment); removeAll(t, j) == 0 {
		t.Fatal("nothing was removed")
	}
	lived(t, j, "second", 40)
	c.take(t, j)
	must.Do(t, c.verify(t))
	if _, _, err := j.Copy(early, 3, 10_000); !errors.Is(err, chain.ErrNoMark) {
		t.Errorf("behind a record that was removed: %v", err)
	}
	late := &copies{parts: map[uint32][]byte{}, texts: map[chain.Hash][]byte{}}
	late.take(t, j)
	must.Do(t, late.verify(t))
	if _, left, err := j.Copy(c.at, 3, 10_000); err != nil || left != 0 {
		t.Errorf("%d are left: %v", left, err)
	}
	for n, text := range c.parts {
		for at := range text {
			changed := bytes.Clone(text)
			changed[at] ^= 1
			c.parts[n] = changed
			if err := c.verify(t); !errors.Is(err, ErrTampered) {
				t.Fatalf("byte %d of part %d was changed: %v", at, n, err)
			}
		}
		c.parts[n] = text
		break
	}
	other, _ := openFaulty(t, t.TempDir())
	lived(t, other, "first", 60)
	for _, at := range []chain.Mark{c.at, {Number: 5, Segment: 1, Offset: 9}, {Number: 1 << 40, Segment: 1 << 20, Offset: -1}} {
		if _, _, err := other.Copy(at, 3, 10_000); !errors.Is(err, chain.ErrNoMark) {
			t.Errorf("behind %+v of another journal: %v", at, err)
		}
	}
}
