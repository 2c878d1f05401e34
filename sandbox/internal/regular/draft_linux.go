package regular

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Change says which file is to get new content.
type Change struct {
	Path    string   // canonical
	Parents bool     // make missing folders above a new file
	Private bool     // only the owner may read a new file until it has another mode
	Old     *os.File // what is replaced, as Open opened it; nil: the file is new
	Seen    *State   // what Old was before it was read; nil: that is not verified
}

// State tells two versions of a file's content apart. The change time moves with
// every write, and nobody can set it.
type State struct{ Changed, Size int64 } // the former in nanoseconds

// ErrChanged is what errors.Is finds when the file is not the one that was opened,
// or not as it was seen.
var ErrChanged = errors.New("the file was changed or replaced meanwhile by somebody else; read it again")

// ErrUnsynced is what errors.Is finds when the file is in its place but may be lost
// when the machine fails now.
var ErrUnsynced = errors.New("its folder could not be synced")

// Draft is a file that is written and not yet in its place. Until Commit nobody
// finds it: it has no name, or where the file system has no such files, a name of
// its own beside the place.
type Draft struct {
	// File is open for reading, which is enough to set attributes and to sync.
	File *os.File

	change Change
	dir    int
	name   string // "" = none
}

// Begin writes new content into a draft. Discard must be called in the end. Where
// there is an old file, nobody but the owner may read the draft.
func Begin(c Change, data io.Reader) (*Draft, error) {
	dir, err := openFolder(filepath.Dir(c.Path), c.Parents)
	if err != nil {
		return nil, err
	}
	d := &Draft{change: c, dir: dir}
	if err = d.unchanged(); err == nil {
		err = d.write(data)
	}
	if err != nil {
		d.Discard()
		return nil, err
	}
	return d, nil
}

// Discard removes the draft unless it was committed, and lets it go. It may be
// called twice.
func (d *Draft) Discard() {
	if d.dir < 0 {
		return
	}
	if d.name != "" {
		_ = unix.Unlinkat(d.dir, d.name, 0)
	}
	d.File.Close() // allowed on nil
	unix.Close(d.dir)
	d.dir = -1
}

// Commit puts the draft into its place atomically and durably. The file must still be Change.Old,
// as it was seen, and writable; a new one replaces nothing. Other hard links keep the content.
func (d *Draft) Commit() error {
	base := filepath.Base(d.change.Path)
	var err error
	if d.change.Old == nil {
		err = d.appear(base)
	} else {
		err = d.replace(base)
	}
	if err != nil {
		return err
	}
	if err := syncFolder(d.dir); err != nil {
		return fmt.Errorf("%w: %w", ErrUnsynced, err)
	}
	return nil
}

// Remove removes Change.Old, which must be there as it was seen, and writable.
func Remove(c Change) error {
	dir, err := openFolder(filepath.Dir(c.Path), false)
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	if err := (&Draft{change: c, dir: dir}).unchanged(); err != nil {
		return err
	}
	if err := unix.Unlinkat(dir, filepath.Base(c.Path), 0); err != nil {
		return err
	}
	if err := syncFolder(dir); err != nil {
		return fmt.Errorf("%w: %w", ErrUnsynced, err)
	}
	return nil
}

// appear gives the draft a name that nothing has yet.
func (d *Draft) appear(base string) error {
	if d.name == "" {
		return d.link(base)
	}
	err := unix.Renameat2(d.dir, d.name, d.dir, base, unix.RENAME_NOREPLACE)
	if !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOSYS) {
		return d.placed(err)
	}
	// The file system has no such rename. A link never replaces anything; Discard
	// removes the other name.
	return unix.Linkat(d.dir, d.name, d.dir, base, 0)
}

// replace puts the draft in the place of the old file.
func (d *Draft) replace(base string) error {
	if d.name == "" {
		name := temporaryName()
		if err := d.link(name); err != nil {
			return err
		}
		d.name = name
	}
	if err := d.unchanged(); err != nil {
		return err
	}
	return d.placed(unix.Renameat(d.dir, d.name, d.dir, base))
}

// placed forgets the draft's own name when it has been renamed.
func (d *Draft) placed(err error) error {
	if err == nil {
		d.name = ""
	}
	return err
}

func (d *Draft) link(name string) error {
	return unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", d.File.Fd()), d.dir, name, unix.AT_SYMLINK_FOLLOW)
}

// unchanged verifies that the old file is still there, with the content it had
// when it was read, and may be written: renaming over it needs only the folder's
// permission, so the file's own has to be asked for.
func (d *Draft) unchanged() error {
	if d.change.Old == nil {
		return nil
	}
	base := filepath.Base(d.change.Path)
	var there, opened unix.Stat_t
	if err := unix.Fstatat(d.dir, base, &there, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	if err := unix.Fstat(int(d.change.Old.Fd()), &opened); err != nil {
		return err
	}
	if there.Dev != opened.Dev || there.Ino != opened.Ino {
		return ErrChanged
	}
	if seen := d.change.Seen; seen != nil && *seen != (State{opened.Ctim.Nano(), opened.Size}) {
		return ErrChanged
	}
	if err := unix.Faccessat(d.dir, base, unix.W_OK, unix.AT_EACCESS|unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return fmt.Errorf("the file itself is not to be written: %w", err)
	}
	return nil
}

// write makes the file and fills it.
//
// A child that is forked while the file is open for writing keeps it so until
// it calls exec, and running the new file fails with ETXTBSY meanwhile
// (golang/go#22315); hence the lock, which must not last as long as a sync.
func (d *Draft) write(data io.Reader) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	w, err := d.create()
	if err != nil {
		return err
	}
	return d.fill(w, data)
}

// fill writes the content, and opens the file for reading.
func (d *Draft) fill(w *os.File, data io.Reader) error {
	_, err := io.Copy(w, data)
	if err == nil {
		err = d.reopen(w)
	}
	return cause(errors.Join(cause(err), cause(w.Close())))
}

// create makes the file, without a name where the file system can.
func (d *Draft) create() (*os.File, error) {
	w, err := d.openNew(".", unix.O_TMPFILE)
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EISDIR) || errors.Is(err, unix.EINVAL) {
		w, err = d.createNamed()
	}
	if errors.Is(err, unix.EACCES) {
		err = fmt.Errorf("its folder is not to be written, and a file is written beside its place first: %w", err)
	}
	return w, err
}

func (d *Draft) createNamed() (*os.File, error) {
	name := temporaryName()
	w, err := d.openNew(name, unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW)
	if err == nil {
		d.name = name
	}
	return w, err
}

func (d *Draft) openNew(name string, flags int) (*os.File, error) {
	mode := uint32(0o666)
	if d.change.Old != nil || d.change.Private {
		mode = 0o600 // until it has the old one's
	}
	fd, err := unix.Openat(d.dir, name, flags|unix.O_WRONLY|unix.O_CLOEXEC, mode)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "draft"), nil
}

// reopen opens the file that w writes for reading.
func (d *Draft) reopen(w *os.File) error {
	fd, err := unix.Open(fmt.Sprintf("/proc/self/fd/%d", w.Fd()), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err == nil {
		d.File = os.NewFile(uintptr(fd), "draft")
	}
	return err
}

// openFolder opens a folder as a place, which needs no right to list it.
func openFolder(canonical string, parents bool) (int, error) {
	const flags = unix.O_PATH | unix.O_DIRECTORY
	fd, err := OpenAt(unix.AT_FDCWD, canonical, flags)
	if !parents || !errors.Is(err, unix.ENOENT) {
		return fd, err
	}
	fd, err = OpenAt(unix.AT_FDCWD, "/", flags)
	for name := range strings.SplitSeq(strings.Trim(canonical, "/"), "/") {
		if err != nil {
			return -1, err
		}
		up := fd
		fd, err = OpenAt(up, name, flags)
		if errors.Is(err, unix.ENOENT) {
			if err = unix.Mkdirat(up, name, 0o777); err == nil || errors.Is(err, unix.EEXIST) {
				fd, err = OpenAt(up, name, flags)
			}
		}
		unix.Close(up)
	}
	return fd, err
}

// syncFolder makes the new name durable. A folder that may not be listed cannot
// be opened for it: the file system syncs it in its own time.
func syncFolder(dir int) error {
	fd, err := unix.Openat(dir, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.EACCES) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.Fsync(fd); !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.EROFS) {
		return err
	}
	return nil // a file system without it
}

// cause drops the draft's name, which means nothing to a reader.
func cause(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}

func temporaryName() string {
	var b [8]byte
	rand.Read(b[:]) // never fails
	return ".toold-" + hex.EncodeToString(b[:]) + ".tmp"
}
