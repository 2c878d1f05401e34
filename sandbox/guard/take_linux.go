package guard

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// take moves what is at path into a folder of its own in the quarantine, beside a
// file that tells where it was, and returns where it is.
func take(path, quarantine string) (kept string, err error) {
	dir, err := openFolder(filepath.Dir(path))
	if err != nil {
		return "", err
	}
	defer unix.Close(dir)
	name := filepath.Base(path)
	if err := unix.Fstatat(dir, name, &unix.Stat_t{}, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return "", err
	}
	cell := filepath.Join(quarantine, time.Now().UTC().Format(cellLayout)+"-"+rand.Text()[:6])
	if err := os.MkdirAll(cell, 0o700); err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(cell, takenFrom), []byte(path+"\n"), 0o600); err != nil {
		return "", err
	}
	kept = filepath.Join(cell, taken)
	if err := move(dir, name, path, kept); err != nil {
		os.RemoveAll(cell)
		return "", err
	}
	return kept, nil
}

// remove removes what is at path, without following a link.
func remove(path string) error {
	dir, err := openFolder(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	root, err := os.OpenRoot("/proc/self/fd/" + strconv.Itoa(dir))
	if err != nil {
		return err
	}
	defer root.Close()
	return root.RemoveAll(filepath.Base(path))
}

// move renames, or copies and removes where the quarantine is on another file
// system. A call may have taken away the rights that this needs.
func move(dir int, name, path, to string) error {
	err := unix.Renameat2(dir, name, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EACCES) {
		_ = soften(filepath.Dir(path))
		_ = soften(path)
		err = unix.Renameat2(dir, name, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE)
	}
	if errors.Is(err, unix.EXDEV) || errors.Is(err, unix.EINVAL) {
		return moveAcross(dir, name, to)
	}
	return err
}

// soften gives the owner, who we are, all rights to what is at path.
func soften(path string) error {
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{
		Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	})
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	return unix.Chmod("/proc/self/fd/"+strconv.Itoa(fd), st.Mode&0o7777|0o700)
}

// mostKept is how much of a tree is copied. The rest is removed all the same.
const mostKept = 64 << 20

// moveAcross copies and removes. os.Root leads nowhere else, whatever links a
// call puts into the tree meanwhile.
func moveAcross(dir int, name, to string) error {
	from, err := os.OpenRoot("/proc/self/fd/" + strconv.Itoa(dir))
	if err != nil {
		return err
	}
	defer from.Close()
	left := int64(mostKept)
	walked := fs.WalkDir(from.FS(), name, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil // a part that cannot be read is not kept
		}
		rel, err := filepath.Rel(name, path)
		if err != nil {
			return err
		}
		return copyEntry(from, path, filepath.Join(to, rel), d.Type(), &left)
	})
	if err := from.RemoveAll(name); err != nil {
		return errors.Join(walked, err)
	}
	return walked
}

func copyEntry(from *os.Root, path, to string, mode fs.FileMode, left *int64) error {
	switch {
	case mode.IsDir():
		return os.Mkdir(to, 0o700)
	case mode&fs.ModeSymlink != 0:
		target, err := from.Readlink(path)
		if err != nil {
			return nil
		}
		return os.Symlink(target, to)
	case !mode.IsRegular():
		return os.WriteFile(to, fmt.Appendf(nil, "here was %s\n", mode), 0o600)
	}
	in, err := from.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	n, err := io.Copy(out, io.LimitReader(in, *left))
	*left -= n
	return errors.Join(err, out.Close())
}
