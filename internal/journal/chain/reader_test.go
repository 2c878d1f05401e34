package chain

import (
	"errors"
	"os"
	"sync/atomic"
	"testing"

	"github.com/toold/toold/internal/must"
)

// opened is a directory that counts the files that are open.
type opened struct {
	Dir
	files, most atomic.Int64
	all         atomic.Int64 // how often a file was opened
	longer      int64        // than it is, a file was when its size was read
}

func (d *opened) Open(name string) (File, error) { return d.counted(d.Dir.Open(name)) }

func (d *opened) Create(name string) (File, error) { return d.counted(d.Dir.Create(name)) }

func (d *opened) counted(f File, err error) (File, error) {
	if d.all.Add(1); err == nil {
		d.most.Store(max(d.most.Load(), d.files.Add(1)))
	}
	return openedFile{f, d}, err
}

func (d *opened) Same(f File) (int64, bool, error) { return d.Dir.Same(f.(openedFile).File) }

type openedFile struct {
	File
	of *opened
}

func (f openedFile) Close() error {
	f.of.files.Add(-1)
	return f.File.Close()
}

func (f openedFile) Size() (int64, error) {
	size, err := f.File.Size()
	return size + f.of.longer, err
}

// segmented is a log of some segments, each of one record.
func segmented(t *testing.T, n int) (*opened, []Mark) {
	t.Helper()
	dir := &opened{Dir: must.Get(Directory(t.TempDir()))(t)}
	l := must.Get(Open(Options{Dir: dir, Notes: dir, Note: "note", SegmentBytes: 1, Seen: func(Record) error { return nil }}))(t)
	var marks []Mark
	for range n {
		must.Do(t, l.Update(func(b *Batch) error {
			m, err := b.Append(1, []byte("text"))
			marks = append(marks, m)
			return err
		}))
	}
	must.Do(t, l.Close())
	if most, left := dir.most.Load(), dir.files.Load(); most > 10 || left != 0 {
		t.Errorf("the log had %d files open, and has %d", most, left)
	}
	return dir, marks
}

// However many segments it reads, a Reader has few files open, those of few segments until the end, and then none.
func TestAReaderKeepsFewFilesOpen(t *testing.T) {
	t.Parallel()
	dir, marks := segmented(t, 40)
	r := NewReader(dir)
	for range 3 {
		for _, m := range marks {
			if rec, err := r.Record(m.Segment, m.Offset); err != nil || rec.Number != m.Number {
				t.Fatal(rec, err)
			}
		}
	}
	if most := dir.most.Load(); most > 10 {
		t.Errorf("%d files were open", most)
	}
	r.forget()
	dir.all.Store(0)
	for i := range 20 {
		must.Get(r.Record(marks[i%4].Segment, 0))(t)
	}
	if all := dir.all.Load(); all != 4 {
		t.Errorf("of 4 segments files were opened %d times", all)
	}
	if r.Close(); dir.files.Load() != 0 {
		t.Errorf("%d files are open", dir.files.Load())
	}
}

// A segment that becomes shorter while it is read is an error, and the end.
func TestASegmentThatBecomesShorterEndsItsReader(t *testing.T) {
	t.Parallel()
	dir, marks := segmented(t, 1)
	dir.longer = 1000
	path := dir.Dir.(*directory).path + "/" + segmentName(marks[0].Segment)
	info := must.Get(os.Stat(path))(t)
	for cut := range int64(60) {
		must.Do(t, os.Truncate(path, info.Size()-cut))
		r := NewReader(dir)
		if err := r.Each(marks[0].Segment, 0, 100, func(Record) error { return nil }); !errors.Is(err, errBroken) {
			t.Errorf("%d bytes shorter: %v", cut, err)
		}
		r.Close()
	}
}
