package chain_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/internal/journal/chain"
	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/internal/rerun"
)

func TestAFileIsNoDirectory(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	dir := directory(t, path)
	must.Do(t, os.WriteFile(filepath.Join(path, "blobs"), nil, 0o600))
	if _, err := dir.Sub("blobs", false); err == nil {
		t.Error("a file was taken for a directory")
	}
}

// What is on a file system that was mounted for reading alone can be read.
func TestALogOnAReadOnlyFileSystemIsRead(t *testing.T) {
	t.Parallel()
	path := rerun.Mounting(t)
	if path == "" {
		return
	}
	must.Do(t, unix.Mount("none", path, "tmpfs", 0, ""))
	dir := must.Get(chain.Directory(path))(t)
	var seen []string
	o := chain.Options{Dir: dir, Notes: dir, Note: "head", Wait: time.Minute, SegmentBytes: 1 << 20, Seen: func(r chain.Record) error {
		seen = append(seen, string(r.Body))
		return nil
	}}
	one := func(b *chain.Batch) error {
		_, err := b.Append('m', []byte("one"))
		return err
	}
	l := must.Get(chain.Open(o))(t)
	must.Do(t, l.Update(one))
	must.Do(t, l.Close())
	must.Do(t, dir.Close())
	must.Do(t, unix.Mount("none", path, "tmpfs", unix.MS_REMOUNT|unix.MS_RDONLY, ""))
	o.Dir = directory(t, path)
	o.Notes = o.Dir
	l = must.Get(chain.Open(o))(t)
	if err := l.Update(one); err == nil || len(seen) != 1 {
		t.Errorf("read %q, and writing gives %v", seen, err)
	}
	must.Do(t, l.Close())
}
