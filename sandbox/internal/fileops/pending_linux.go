package fileops

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/internal/paths"
	"github.com/toold/toold/sandbox/internal/nofollow"
)

// Change describes a file to replace or create.
type Change struct {
	Path    string   // canonical
	Parents bool     // create missing parent directories of a new file
	Private bool     // only the owner can access a new file until its mode is set
	Old     *os.File // opened file to replace; nil = the file is new
	Seen    *State   // state of Old before it was read; nil = no check
}

// State distinguishes versions of a file's content by size and by ctime, which no program can set.
type State struct{ Changed, Size int64 } // Changed in nanoseconds

// ErrUnsynced is returned if the file was replaced, but a crash may undo that.
var ErrUnsynced = errors.New("its directory could not be synced")

// PendingFile is a written file that is not yet committed. It has no name, or a temporary one in the same directory.
type PendingFile struct {
	// File is open for reading, which suffices to set attributes and to sync.
	File *os.File

	change Change
	dir    int
	name   string // temporary name; "" = none
}

// Begin writes new content to a pending file, which the caller must discard in the end. Only the owner may read the
// pending file if there is an old file.
func Begin(c Change, data io.Reader) (*PendingFile, error) {
	dir, err := openDir(path.Dir(c.Path), c.Parents)
	if err != nil {
		return nil, err
	}
	d := &PendingFile{change: c, dir: dir}
	if err = d.unchanged(); err == nil {
		err = d.write(data)
	}
	if err != nil {
		d.Discard()
		return nil, err
	}
	return d, nil
}

// Discard removes the pending file unless it was committed. It may be called repeatedly.
func (d *PendingFile) Discard() {
	if d.dir < 0 {
		return
	}
	if d.name != "" {
		_ = unix.Unlinkat(d.dir, d.name, 0)
	}
	d.File.Close() // nil is allowed
	unix.Close(d.dir)
	d.dir = -1
}

// Commit moves the pending file to its path atomically and durably. The file there must still be Change.Old,
// unchanged and writable. A new file replaces nothing. Other hard links keep the old content.
func (d *PendingFile) Commit() error {
	base := path.Base(d.change.Path)
	var err error
	if d.change.Old == nil {
		err = d.appear(base)
	} else {
		err = d.replace(base)
	}
	if err != nil {
		return err
	}
	return syncDir(d.dir)
}

// Remove removes Change.Old, which must be unchanged and writable.
func Remove(c Change) error {
	dir, err := openDir(path.Dir(c.Path), false)
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	if err := (&PendingFile{change: c, dir: dir}).unchanged(); err != nil {
		return err
	}
	if err := unix.Unlinkat(dir, path.Base(c.Path), 0); err != nil {
		return err
	}
	return syncDir(dir)
}

func (d *PendingFile) appear(base string) error {
	if d.name == "" {
		return d.link(base)
	}
	err := unix.Renameat2(d.dir, d.name, d.dir, base, unix.RENAME_NOREPLACE)
	if !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOSYS) {
		return d.linked(err)
	}
	// Not supported. link(2) never replaces anything; Discard removes the temporary name.
	return unix.Linkat(d.dir, d.name, d.dir, base, 0)
}

func (d *PendingFile) replace(base string) error {
	if d.name == "" {
		name, err := temporaryName()
		if err == nil {
			err = d.link(name)
		}
		if err != nil {
			return err
		}
		d.name = name
	}
	if err := d.unchanged(); err != nil {
		return err
	}
	return d.linked(unix.Renameat(d.dir, d.name, d.dir, base))
}

func (d *PendingFile) linked(err error) error {
	if err == nil {
		d.name = ""
	}
	return err
}

func (d *PendingFile) link(name string) error {
	return unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", d.File.Fd()), d.dir, name, unix.AT_SYMLINK_FOLLOW)
}

// unchanged checks that the old file still has the content that was read, and that it is writable: rename(2) only
// checks the permission of the directory.
func (d *PendingFile) unchanged() error {
	if d.change.Old == nil {
		return nil
	}
	base := path.Base(d.change.Path)
	there, err := nofollow.Stat(d.dir, base)
	if err != nil {
		return err
	}
	opened, err := nofollow.Stat(int(d.change.Old.Fd()), "")
	if err != nil {
		return err
	}
	seen := d.change.Seen
	if there.ID != opened.ID || seen != nil && *seen != (State{opened.Changed.UnixNano(), opened.Size}) {
		return ErrChanged
	}
	if err := unix.Faccessat(d.dir, base, unix.W_OK, unix.AT_EACCESS|unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return fmt.Errorf("the file itself is not to be written: %w", err)
	}
	return nil
}

// write creates and fills the file. It holds the lock because a child forked meanwhile keeps the file open for
// writing until exec, during which running the file fails with ETXTBSY (golang/go#22315). It must not hold the lock
// during a sync.
func (d *PendingFile) write(data io.Reader) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	w, err := d.create()
	if err != nil {
		return err
	}
	return d.fill(w, data)
}

func (d *PendingFile) fill(w *os.File, data io.Reader) error {
	_, err := io.Copy(w, data)
	if err == nil {
		err = d.reopen(w)
	}
	return paths.Bare(errors.Join(paths.Bare(err), paths.Bare(w.Close()))) // the path of the temporary file would only confuse
}

func (d *PendingFile) create() (*os.File, error) {
	w, err := d.openNew(".", unix.O_TMPFILE)
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EISDIR) || errors.Is(err, unix.EINVAL) {
		w, err = d.createNamed()
	}
	if errors.Is(err, unix.EACCES) {
		err = fmt.Errorf("its directory is not writable, and the new file is written there first: %w", err)
	}
	return w, err
}

func (d *PendingFile) createNamed() (*os.File, error) {
	name, err := temporaryName()
	if err != nil {
		return nil, err
	}
	w, err := d.openNew(name, unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW)
	if err == nil {
		d.name = name
	}
	return w, err
}

func (d *PendingFile) openNew(name string, flags int) (*os.File, error) {
	mode := uint32(0o666)
	if d.change.Old != nil || d.change.Private {
		mode = 0o600 // until the caller sets its mode
	}
	fd, err := unix.Openat(d.dir, name, flags|unix.O_WRONLY|unix.O_CLOEXEC, mode)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "draft"), nil
}

func (d *PendingFile) reopen(w *os.File) error {
	fd, err := unix.Open(fmt.Sprintf("/proc/self/fd/%d", w.Fd()), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err == nil {
		d.File = os.NewFile(uintptr(fd), "draft")
	}
	return err
}

// openDir opens a directory with O_PATH, which requires no permission to list it.
func openDir(canonical string, parents bool) (int, error) {
	const flags = unix.O_PATH | unix.O_DIRECTORY
	fd, err := open(canonical, flags)
	if !parents || !errors.Is(err, unix.ENOENT) {
		return fd, err
	}
	fd, err = nofollow.Open("/", flags)
	for name := range strings.SplitSeq(strings.Trim(canonical, "/"), "/") {
		if err != nil {
			return -1, err
		}
		up := fd
		fd, err = nofollow.OpenAt(up, name, flags)
		if errors.Is(err, unix.ENOENT) {
			if err = unix.Mkdirat(up, name, 0o777); err == nil || errors.Is(err, unix.EEXIST) {
				fd, err = nofollow.OpenAt(up, name, flags)
			}
		}
		unix.Close(up)
	}
	return fd, err
}

// syncDir makes the new name durable. A directory that cannot be opened for reading cannot be synced; the file system
// does that later. Errors are ErrUnsynced.
func syncDir(dir int) error {
	fd, err := nofollow.Reopen(dir)
	if errors.Is(err, unix.EACCES) {
		return nil
	}
	if err == nil {
		err = unix.Fsync(fd)
		unix.Close(fd)
	}
	if err == nil || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EROFS) {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrUnsynced, err)
}

func temporaryName() (string, error) {
	var b [16]byte
	_, err := unix.Getrandom(b[:], 0)
	for i := range b {
		b[i] = 'A' + b[i]%16
	}
	return ".toold-" + string(b[:]) + ".tmp", err
}
