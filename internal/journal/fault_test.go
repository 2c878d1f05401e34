package journal

import (
	"errors"
	"os"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/toold/toold/internal/journal/chain"
	"github.com/toold/toold/internal/must"
)

// faultyDir is the directory of a log on a disk that can be full, or fail, and that knows
// what is on it.
type faultyDir struct {
	chain.Dir
	full, broken   atomic.Bool
	ballast        string                       // the disk is full while this file is there
	stuck          atomic.Bool                  // no file can be removed
	noRoom         atomic.Pointer[func() error] // of a write; may be nil
	writes, synced atomic.Int64                 // so many of the writes are on the disk
}

type faultyFile struct {
	chain.File
	of *faultyDir
}

func (d *faultyDir) Open(name string) (chain.File, error) { return d.wrap(d.Dir.Open(name)) }

func (d *faultyDir) Create(name string) (chain.File, error) { return d.wrap(d.Dir.Create(name)) }

func (d *faultyDir) Remove(name string) error {
	if d.stuck.Load() {
		return syscall.EIO
	}
	return d.Dir.Remove(name)
}

func (d *faultyDir) Sub(name string, create bool) (chain.Dir, error) {
	sub, err := d.Dir.Sub(name, create)
	return &faultySub{sub, d}, err
}

// faultySub is a directory on the same disk.
type faultySub struct {
	chain.Dir
	of *faultyDir
}

func (d *faultySub) Sub(name string, create bool) (chain.Dir, error) {
	sub, err := d.Dir.Sub(name, create)
	return &faultySub{sub, d.of}, err
}

func (d *faultySub) Open(name string) (chain.File, error) { return d.of.wrap(d.Dir.Open(name)) }

func (d *faultySub) Create(name string) (chain.File, error) { return d.of.wrap(d.Dir.Create(name)) }

func (d *faultyDir) wrap(f chain.File, err error) (chain.File, error) {
	if err != nil {
		return nil, err
	}
	return faultyFile{f, d}, nil
}

func (d *faultyDir) Same(f chain.File) (int64, bool, error) {
	return d.Dir.Same(f.(faultyFile).File)
}

func (f faultyFile) WriteAt(p []byte, off int64) (int, error) {
	_, err := os.Stat(f.of.ballast)
	if f.of.full.Load() || err == nil {
		n, _ := f.File.WriteAt(p[:len(p)/2], off)
		return n, syscall.ENOSPC
	}
	if no := f.of.noRoom.Load(); no != nil {
		if err := (*no)(); err != nil {
			return 0, err
		}
	}
	f.of.writes.Add(1)
	return f.File.WriteAt(p, off)
}

func (f faultyFile) Sync() error {
	if f.of.broken.Load() {
		return syscall.EIO
	}
	begun := f.of.writes.Load()
	if err := f.File.Sync(); err != nil {
		return err
	}
	f.of.synced.Store(begun)
	return nil
}

// openFaulty opens a journal with small segments on such a disk.
func openFaulty(t *testing.T, dir string) (*Journal, *faultyDir) {
	t.Helper()
	var disk faultyDir
	j := must.Get(open(t.Context(), dir, Self(), func(dir string) (files, error) {
		f, err := openFiles(dir)
		disk.Dir = f.log
		f.log, f.segment, f.chunk = &disk, 4000, 16
		return f, err
	}))(t)
	t.Cleanup(func() {
		if err := j.Close(); err != nil && !disk.broken.Load() && !errors.Is(err, syscall.EIO) {
			t.Error(err)
		}
	})
	return j, &disk
}
