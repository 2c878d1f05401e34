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
	// To open a device or a pipe has effects of its own, so not even that. What
	// counts is the second look, at what was opened.
	if info, err := os.Lstat(canonical); err == nil {
		if err := regular(info, canonical); err != nil {
			return nil, err
		}
	}
	fd, err := openNoLinks(unix.AT_FDCWD, canonical, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY)
	if errors.Is(err, unix.ENXIO) {
		return nil, fmt.Errorf("cannot open %s: it is a socket or a device without a driver, not a regular file", canonical)
	}
	if err != nil {
		return nil, explain("open", canonical, err)
	}
	f := impatient(fd, canonical)
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

// impatient makes a file of a non-blocking descriptor whose reads fail where
// they would have to wait: some regular files of the kernel, such as /proc/kmsg,
// have more to read only when something happens. os.NewFile would have the
// reader wait for that in the poller, so it must not see the flag.
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

// regular refuses what is not a regular file: reading a pipe may wait for ever,
// reading a device never end.
func regular(info fs.FileInfo, path string) error {
	kind := ""
	switch mode := info.Mode(); {
	case mode.IsRegular():
		return nil
	case mode.IsDir():
		kind = "a directory"
	case mode&fs.ModeNamedPipe != 0:
		kind = "a named pipe"
	case mode&fs.ModeSocket != 0:
		kind = "a socket"
	case mode&fs.ModeDevice != 0:
		kind = "a device"
	case mode&fs.ModeSymlink != 0:
		kind = "a symbolic link that was not there when the call was judged"
	default:
		kind = "something else"
	}
	return fmt.Errorf("cannot open %s: it is %s, not a regular file", path, kind)
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
	if err := unchanged(dir, name, r); err != nil {
		return explain("write", canonical, err)
	}
	temporary, err := writeBeside(dir, r)
	if err != nil {
		return explain("write", canonical, err)
	}
	if err := rename(dir, temporary, name, r); err != nil {
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

var errChanged = errors.New("the file was changed or replaced meanwhile by somebody else; read it again")

// unchanged verifies that name is still the old file, with the content it had
// when it was read, and may be written: renaming over it needs only the folder's
// permission, so the file's own has to be asked for.
func unchanged(dir int, name string, r Replacement) error {
	if r.Old == nil {
		return nil
	}
	var there unix.Stat_t
	if err := unix.Fstatat(dir, name, &there, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	opened, err := r.Old.Stat()
	if err != nil {
		return err
	}
	now := opened.Sys().(*syscall.Stat_t)
	if there.Dev != now.Dev || there.Ino != now.Ino {
		return errChanged
	}
	if r.Seen != nil {
		// The change time moves with every write, and nobody can set it.
		if was := r.Seen.Sys().(*syscall.Stat_t); was.Ctim != now.Ctim || was.Size != now.Size {
			return errChanged
		}
	}
	if err := unix.Faccessat(dir, name, unix.W_OK, unix.AT_EACCESS|unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return fmt.Errorf("the file itself is not to be written: %w", err)
	}
	return nil
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
	if errors.Is(err, unix.EACCES) {
		return "", fmt.Errorf("its folder is not to be written, and a file is written beside its place first: %w", err)
	}
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
func rename(dir int, temporary, name string, r Replacement) error {
	if r.Old != nil {
		if err := unchanged(dir, name, r); err != nil {
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
