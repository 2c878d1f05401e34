package sandbox

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/sandbox/internal/regular"
)

// openFile is Files.Open with the rights of the daemon (openat2(2), Linux 5.6).
func openFile(canonical string) (*os.File, error) {
	fd, err := regular.Open(canonical)
	if err != nil {
		return nil, explain("open", canonical, err)
	}
	return impatient(fd, canonical), nil
}

// openDir opens a directory by its canonical path, with the daemon's rights. No link is followed.
func openDir(canonical string) (*os.File, error) {
	fd, err := regular.OpenDir(canonical)
	if err != nil {
		return nil, explain("open", canonical, err)
	}
	return os.NewFile(uintptr(fd), canonical), nil
}

// impatient makes a file of a non-blocking descriptor whose reads fail where they would have to
// wait, as of /proc/kmsg. os.NewFile must not see the flag, or the poller would wait.
func impatient(fd int, name string) *os.File {
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
	if err == nil {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_SETFL, flags&^unix.O_NONBLOCK)
	}
	f := os.NewFile(uintptr(fd), name)
	if err == nil {
		_, _ = unix.FcntlInt(uintptr(fd), unix.F_SETFL, flags) // as it was set by open
	}
	return f
}

// replaceFile is Files.Replace with the rights of the daemon.
func replaceFile(canonical string, r Replacement) error {
	return replaceBy(&own{}, canonical, r)
}

// writer is who makes the new file and puts it in its place.
type writer interface {
	// Begin writes the content and returns the new file, open for reading.
	Begin(c regular.Change, content []byte) (*os.File, error)
	Commit() error
	// Remove removes the old file.
	Remove(c regular.Change) error
	// Discard removes what was begun and not committed, and closes the file.
	Discard()
}

// own writes with the rights of this process.
type own struct{ draft *regular.Draft }

func (o *own) Begin(c regular.Change, content []byte) (file *os.File, err error) {
	if o.draft, err = regular.Begin(c, bytes.NewReader(content)); err != nil {
		return nil, err
	}
	return o.draft.File, nil
}

func (o *own) Commit() error { return o.draft.Commit() }

func (o *own) Remove(c regular.Change) error { return regular.Remove(c) }

func (o *own) Discard() {
	if o.draft != nil {
		o.draft.Discard()
	}
}

// replaceBy has w do what replaceFile promises. Owner and attributes are given by
// this process, whoever writes: in a user namespace other users and groups have no
// numbers.
func replaceBy(w writer, canonical string, r Replacement) error {
	change := regular.Change{Path: canonical, Parents: r.Parents, Private: r.Like != nil, Old: r.Old}
	if r.Seen != nil {
		was := r.Seen.Sys().(*syscall.Stat_t)
		change.Seen = &regular.State{Changed: was.Ctim.Nano(), Size: was.Size}
	}
	did, do, err := "written", "write", error(nil)
	if r.Remove {
		did, do, err = "removed", "remove", w.Remove(change)
	} else {
		err = writeBy(w, change, r)
	}
	switch {
	case errors.Is(err, regular.ErrUnsynced):
		return fmt.Errorf("%s is %s, but %w", canonical, did, err)
	case err != nil:
		return explain(do, canonical, err)
	}
	return nil
}

// writeBy has w write the new content and put it in its place.
func writeBy(w writer, change regular.Change, r Replacement) error {
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
