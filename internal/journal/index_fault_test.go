package journal

import (
	"errors"
	"fmt"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/toold/toold/internal/journal/chain"
	"github.com/toold/toold/internal/must"
)

// indexDisk is the directory of a log on a disk on which the index fails from some call on.
type indexDisk struct {
	chain.Dir
	left  atomic.Int64 // so many calls succeed
	fails error
}

func (d *indexDisk) fail() error {
	if d.left.Add(-1) < 0 {
		return d.fails
	}
	return nil
}

func (d *indexDisk) Sub(name string, create bool) (chain.Dir, error) {
	sub, err := d.Dir.Sub(name, create)
	if name != indexName || err != nil {
		return sub, err
	}
	return failingDir{sub, d}, d.fail()
}

type failingDir struct {
	chain.Dir
	of *indexDisk
}

func (d failingDir) Open(name string) (chain.File, error) {
	if err := d.of.fail(); err != nil {
		return nil, err
	}
	f, err := d.Dir.Open(name)
	return failingFile{f, d.of}, err
}

func (d failingDir) Create(name string) (chain.File, error) {
	if err := d.of.fail(); err != nil {
		return nil, err
	}
	f, err := d.Dir.Create(name)
	return failingFile{f, d.of}, err
}

func (d failingDir) Names() ([]string, error) {
	if err := d.of.fail(); err != nil {
		return nil, err
	}
	return d.Dir.Names()
}

func (d failingDir) Rename(from, to string) error {
	if err := d.of.fail(); err != nil {
		return err
	}
	return d.Dir.Rename(from, to)
}

func (d failingDir) Remove(name string) error {
	if err := d.of.fail(); err != nil {
		return err
	}
	return d.Dir.Remove(name)
}

type failingFile struct {
	chain.File
	of *indexDisk
}

func (f failingFile) ReadAt(p []byte, at int64) (int, error) {
	if err := f.of.fail(); err != nil {
		return 0, err
	}
	return f.File.ReadAt(p, at)
}

func (f failingFile) WriteAt(p []byte, at int64) (int, error) {
	if err := f.of.fail(); err != nil {
		n, _ := f.File.WriteAt(p[:len(p)/2], at)
		return n, err
	}
	return f.File.WriteAt(p, at)
}

func (f failingFile) Size() (int64, error) {
	if err := f.of.fail(); err != nil {
		return 0, err
	}
	return f.File.Size()
}

// Whichever call for the index fails, and all after it: calls are recorded, once, and queries give
// what they give otherwise.
func TestAnIndexThatCannotBeKeptStopsNothing(t *testing.T) {
	t.Parallel()
	kinds := []error{syscall.ENOSPC, syscall.EACCES, syscall.EIO}
	for begin := range kinds { // side by side
		t.Run(fmt.Sprint(begin), func(t *testing.T) {
			t.Parallel()
			for at, reached := int64(begin*3), true; reached; at += 9 {
				fails := kinds[(at/9+int64(begin))%3] // each at a third of the calls
				dir := t.TempDir()
				want, _ := indexed(t, dir)
				disk := &indexDisk{fails: fails}
				disk.left.Store(at)
				j, err := open(t.Context(), dir, Self(), func(dir string) (files, error) {
					f, err := smallChunks(dir)
					disk.Dir, f.log = f.log, disk
					return f, err
				})
				if err != nil {
					t.Fatalf("call %d: %v", at, err)
				}
				is := dump(t, j)
				if len(is.Calls) != len(want.Calls) || len(is.Messages) != len(want.Messages) {
					t.Errorf("call %d: %d calls and %d messages", at, len(is.Calls), len(is.Messages))
				}
				if _, fresh, err := j.Begin(t.Context(), Call{Client: "agent", ID: "a-0", Message: []byte(`{}`)}, Decision{}); err != nil || fresh {
					t.Errorf("call %d: a repeat is new: %v, %v", at, fresh, err)
				}
				lived(t, j, "more", 10)
				j.settle()
				if rec, err := j.FindAny(t.Context(), "more-9"); err != nil || rec.State != Returned {
					t.Errorf("call %d: %+v, %v", at, rec, err)
				}
				reached = disk.left.Load() < 0
				if err := j.Close(); err != nil && !errors.Is(err, fails) {
					t.Errorf("call %d: %v", at, err)
				}
				for range 10 {
					want.Calls, want.Messages = append(want.Calls, Record{}), append(want.Messages, Message{}, Message{})
				}
				usable(t, fmt.Sprint("after call ", at), dir, want)
			}
		})
	}
}

// What a full disk has no room for is not made again and again.
func TestAFullDiskIsNotTriedAtEachPause(t *testing.T) {
	t.Parallel()
	disk := &indexDisk{fails: syscall.ENOSPC}
	disk.left.Store(1000)
	j := must.Get(open(t.Context(), t.TempDir(), Self(), func(dir string) (files, error) {
		f, err := openFiles(dir)
		disk.Dir, f.log, f.chunk = f.log, disk, 64
		return f, err
	}))(t)
	defer j.Close()
	disk.left.Store(0)
	lived(t, j, "a", 40)
	j.settle()
	before := disk.left.Load()
	if before == 0 {
		t.Fatal("nothing was to be written")
	}
	j.settle()
	if after := disk.left.Load(); after != before {
		t.Errorf("%d calls of the disk without a new record", before-after)
	}
	disk.left.Store(1000)
	lived(t, j, "b", 10)
	if j.settle(); disk.left.Load() == 1000 {
		t.Error("nothing was written when there was room and more to write")
	}
}
