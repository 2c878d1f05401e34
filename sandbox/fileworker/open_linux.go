package fileworker

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/sandbox/internal/fileops"
)

// openFile implements Pool.Open in the daemon itself (openat2(2), Linux 5.6).
func openFile(canonical string) (*os.File, error) {
	fd, err := fileops.Open(canonical)
	if err != nil {
		return nil, explain("open", canonical, err)
	}
	return impatient(fd, canonical), nil
}

// openDir opens a directory by its canonical path in the daemon itself. It follows no links.
func openDir(canonical string) (*os.File, error) {
	fd, err := fileops.OpenDir(canonical)
	if err != nil {
		return nil, explain("open", canonical, err)
	}
	return os.NewFile(uintptr(fd), canonical), nil
}

// impatient returns a file for a nonblocking descriptor, such as that of /proc/kmsg, whose reads fail if they would
// block. os.NewFile must not see the flag, or reads would wait in the poller.
func impatient(fd int, name string) *os.File {
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
	if err == nil {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_SETFL, flags&^unix.O_NONBLOCK)
	}
	f := os.NewFile(uintptr(fd), name)
	if err == nil {
		_, _ = unix.FcntlInt(uintptr(fd), unix.F_SETFL, flags) // as open set it
	}
	return f
}

func replaceFile(canonical string, r Replacement) error {
	return replaceBy(&own{}, canonical, r)
}

type writer interface {
	// Begin writes the content and returns the new file, opened for reading.
	Begin(c fileops.Change, content []byte) (*os.File, error)
	Commit() error
	// Remove removes the old file.
	Remove(c fileops.Change) error
	// Discard removes a new file that was not committed, and closes it.
	Discard()
}

type own struct{ pending *fileops.PendingFile }

func (o *own) Begin(c fileops.Change, content []byte) (file *os.File, err error) {
	if o.pending, err = fileops.Begin(c, bytes.NewReader(content)); err != nil {
		return nil, err
	}
	return o.pending.File, nil
}

func (o *own) Commit() error { return o.pending.Commit() }

func (o *own) Remove(c fileops.Change) error { return fileops.Remove(c) }

func (o *own) Discard() {
	if o.pending != nil {
		o.pending.Discard()
	}
}

// replaceBy implements replaceFile with w. This process sets owner and attributes, since a user namespace does not
// map other users and groups.
func replaceBy(w writer, canonical string, r Replacement) error {
	change := fileops.Change{Path: canonical, Parents: r.Parents, Private: r.Like != nil, Old: r.Old}
	if r.Seen != nil {
		was := r.Seen.Sys().(*syscall.Stat_t)
		change.Seen = &fileops.State{Changed: was.Ctim.Nano(), Size: was.Size}
	}
	did, do, err := "written", "write", error(nil)
	if r.Remove {
		did, do, err = "removed", "remove", w.Remove(change)
	} else {
		err = writeBy(w, change, r)
	}
	switch {
	case errors.Is(err, fileops.ErrUnsynced):
		return fmt.Errorf("%s is %s, but %w", canonical, did, err)
	case err != nil:
		return explain(do, canonical, err)
	}
	return nil
}

func writeBy(w writer, change fileops.Change, r Replacement) error {
	defer w.Discard()
	file, err := w.Begin(change, r.Data)
	if like := cmp.Or(r.Old, r.Like); err == nil && like != nil {
		err = copyAttributes(file, like)
	}
	if err == nil {
		err = unix.Fsync(int(file.Fd()))
	}
	if err == nil {
		err = w.Commit()
	}
	return err
}
