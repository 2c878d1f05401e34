package sandbox

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

func isNotDir(err error) bool { return errors.Is(err, unix.ENOTDIR) }

// OpenFile opens a regular file for reading by its canonical path. It follows
// no symbolic link at all and waits for nothing: what was judged under this
// path is what is opened, or there is an error (openat2(2), Linux 5.6).
// fs.ErrNotExist is visible to errors.Is.
func OpenFile(canonical string) (*os.File, error) {
	fd, err := openNoLinks(unix.AT_FDCWD, canonical, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY)
	if errors.Is(err, unix.ENXIO) {
		return nil, fmt.Errorf("cannot open %s: it is a socket or a device without a driver, not a regular file", canonical)
	}
	if err != nil {
		return nil, explain("open", canonical, err)
	}
	f := os.NewFile(uintptr(fd), canonical)
	info, err := f.Stat()
	if err == nil {
		err = regular(info, canonical)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func openNoLinks(dir int, path string, flags uint64) (int, error) {
	for {
		fd, err := unix.Openat2(dir, path, &unix.OpenHow{
			Flags:   flags | unix.O_CLOEXEC,
			Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
		})
		if !errors.Is(err, unix.EINTR) {
			return fd, err
		}
	}
}

func explain(verb, path string, err error) error {
	switch {
	case errors.Is(err, unix.ELOOP):
		return fmt.Errorf("cannot %s %s: a symbolic link appeared in the path after the call was judged", verb, path)
	case errors.Is(err, unix.ENOSYS):
		return fmt.Errorf("cannot %s %s: the kernel has no openat2 (Linux 5.6 or newer is needed)", verb, path)
	}
	return fmt.Errorf("cannot %s %s: %w", verb, path, err)
}

// ReplaceFile gives a file new content at once and for good: readers see the
// old file or the new one, a crash or a full disk leaves the old one. The new
// file is written beside the old one under a name of its own, synced, and
// renamed; other hard links of the old file keep the old content.
//
// No symbolic link is followed. The file must still be r.Old, and writable.
func ReplaceFile(canonical string, r Replacement) error {
	dir, err := openFolder(filepath.Dir(canonical), r.Parents)
	if err != nil {
		return explain("write", canonical, err)
	}
	defer unix.Close(dir)
	name := filepath.Base(canonical)
	if err := unchanged(dir, name, r.Old); err != nil {
		return explain("write", canonical, err)
	}
	temporary, err := writeBeside(dir, r)
	if err != nil {
		return explain("write", canonical, err)
	}
	if err := rename(dir, temporary, name, r.Old); err != nil {
		unix.Unlinkat(dir, temporary, 0)
		return explain("write", canonical, err)
	}
	return explainSync(canonical, syncFolder(dir))
}

func explainSync(canonical string, err error) error {
	if err != nil {
		return fmt.Errorf("%s is written, but the folder could not be synced: %w", canonical, err)
	}
	return nil
}

// openFolder opens a folder as a place, which needs no right to list it.
func openFolder(canonical string, parents bool) (int, error) {
	const flags = unix.O_PATH | unix.O_DIRECTORY
	fd, err := openNoLinks(unix.AT_FDCWD, canonical, flags)
	if !parents || !errors.Is(err, unix.ENOENT) {
		return fd, err
	}
	fd, err = openNoLinks(unix.AT_FDCWD, "/", flags)
	for name := range strings.SplitSeq(strings.Trim(canonical, "/"), "/") {
		if err != nil {
			return -1, err
		}
		up := fd
		fd, err = openNoLinks(up, name, flags)
		if errors.Is(err, unix.ENOENT) {
			if err = unix.Mkdirat(up, name, 0o777); err == nil || errors.Is(err, unix.EEXIST) {
				fd, err = openNoLinks(up, name, flags)
			}
		}
		unix.Close(up)
	}
	return fd, err
}

var errChanged = errors.New("the file was replaced by another one meanwhile; read it again")

// unchanged verifies that name is still the old file and may be written:
// renaming over it needs only the folder's permission, so the file's own has
// to be asked for.
func unchanged(dir int, name string, old *os.File) error {
	if old == nil {
		return nil
	}
	var there, opened unix.Stat_t
	if err := unix.Fstatat(dir, name, &there, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	if err := unix.Fstat(int(old.Fd()), &opened); err != nil {
		return err
	}
	if there.Dev != opened.Dev || there.Ino != opened.Ino {
		return errChanged
	}
	return unix.Faccessat(dir, name, unix.W_OK, unix.AT_EACCESS|unix.AT_SYMLINK_NOFOLLOW)
}

// writeBeside writes the new content into a new file of the folder and returns
// its name. The file is gone when there is an error.
func writeBeside(dir int, r Replacement) (name string, err error) {
	name = ".toold-" + randomHex() + ".tmp"
	mode := uint32(0o666)
	if r.Old != nil {
		mode = 0o600 // until it has the old one's
	}
	f, err := create(dir, name, mode, r.Data)
	if err != nil {
		return "", err
	}
	if r.Old != nil {
		err = copyAttributes(f, r.Old)
	}
	if err == nil {
		err = f.Sync()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		unix.Unlinkat(dir, name, 0)
		return "", cause(err)
	}
	return name, nil
}

// create makes a file with this content and returns it opened for reading,
// which is enough to set attributes and to sync.
//
// A child that is forked while the file is open for writing keeps it so until
// it calls exec, and running the new file fails with ETXTBSY meanwhile
// (golang/go#22315); hence the lock, which must not last as long as a sync.
func create(dir int, name string, mode uint32, data []byte) (*os.File, error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	const flags = unix.O_NOFOLLOW | unix.O_CLOEXEC
	fd, err := unix.Openat(dir, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|flags, mode)
	if err != nil {
		return nil, err
	}
	w := os.NewFile(uintptr(fd), name)
	_, err = w.Write(data)
	fd, again := unix.Openat(dir, name, unix.O_RDONLY|flags, 0)
	r := os.NewFile(uintptr(fd), name) // nil when it was not opened; Close allows that
	if err = errors.Join(cause(err), w.Close(), again); err != nil {
		r.Close()
		unix.Unlinkat(dir, name, 0)
		return nil, err
	}
	return r, nil
}

// cause drops the temporary file's name, which means nothing to a reader.
func cause(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}

func randomHex() string {
	var b [8]byte
	rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// rename puts the new file in its place. A new one must not replace what
// appeared there meanwhile.
func rename(dir int, temporary, name string, old *os.File) error {
	if old != nil {
		if err := unchanged(dir, name, old); err != nil {
			return err
		}
		return unix.Renameat(dir, temporary, dir, name)
	}
	err := unix.Renameat2(dir, temporary, dir, name, unix.RENAME_NOREPLACE)
	if !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOSYS) {
		return err
	}
	// The file system has no such rename. A link never replaces anything.
	if err := unix.Linkat(dir, temporary, dir, name, 0); err != nil {
		return err
	}
	return unix.Unlinkat(dir, temporary, 0)
}

// syncFolder makes the rename durable. A folder that may not be listed cannot
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

// copyAttributes gives to owner, mode and extended attributes of from. Owner
// first: changing it clears bits of the mode.
func copyAttributes(to, from *os.File) error {
	var have, want unix.Stat_t
	if err := unix.Fstat(int(from.Fd()), &want); err != nil {
		return err
	}
	if err := unix.Fstat(int(to.Fd()), &have); err != nil {
		return err
	}
	if have.Uid != want.Uid || have.Gid != want.Gid {
		if err := unix.Fchown(int(to.Fd()), int(want.Uid), int(want.Gid)); err != nil {
			return fmt.Errorf("cannot keep the file's owner (uid %d, gid %d): %w; ask the owner to change it", want.Uid, want.Gid, err)
		}
	}
	if err := copyXattrs(int(to.Fd()), int(from.Fd())); err != nil {
		return fmt.Errorf("cannot keep the file's extended attributes: %w", err)
	}
	return unix.Fchmod(int(to.Fd()), want.Mode&0o1777)
}

func copyXattrs(to, from int) error {
	names := make([]byte, 64<<10) // the kernel's limit (xattr(7))
	n, err := unix.Flistxattr(from, names)
	if errors.Is(err, unix.ENOTSUP) {
		return nil
	}
	if err != nil {
		return err
	}
	value := make([]byte, 64<<10)
	for name := range strings.SplitSeq(strings.TrimSuffix(string(names[:n]), "\x00"), "\x00") {
		if name == "" || name == "security.capability" {
			continue
		}
		size, err := unix.Fgetxattr(from, name, value)
		if err == nil {
			err = unix.Fsetxattr(to, name, value[:size], 0)
		}
		// Labels of security modules are the system's to give.
		if err != nil && (strings.HasPrefix(name, "user.") || strings.HasPrefix(name, "system.")) {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}
