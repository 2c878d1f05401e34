package quarantine

import (
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/sandbox/internal/nofollow"
)

// Restore moves an item back to its original path, which it returns. It follows no links and replaces nothing.
func Restore(quarantine, id string) (string, error) {
	i, ok := item(quarantine, id)
	if !ok || !filepath.IsAbs(i.From) || filepath.Clean(i.From) != i.From {
		return "", fmt.Errorf("the quarantine has no item %q that could be put back", id)
	}
	err := i.Check()
	if err == nil {
		err = i.putBack()
	}
	if err != nil {
		return "", fmt.Errorf("cannot put %s back to %s: %w; it is still in %s", id, i.From, err, i.Kept)
	}
	return i.From, Discard(quarantine, id)
}

func (i Item) putBack() error {
	cell, err := nofollow.Open(filepath.Dir(i.Kept), unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	defer unix.Close(cell)
	dir, err := nofollow.Open(filepath.Dir(i.From), unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	name := filepath.Base(i.From)
	if _, err := nofollow.Stat(cell, taken); err != nil {
		return fmt.Errorf("it was not a file, or too large to be kept; %s in its directory says what it was", notKept)
	}
	err = unix.Renameat2(cell, taken, dir, name, unix.RENAME_NOREPLACE)
	if !errors.Is(err, unix.EXDEV) && !errors.Is(err, unix.EINVAL) {
		return err
	}
	if _, err := nofollow.Stat(dir, name); err == nil {
		return os.ErrExist
	}
	whole := ".toold-" + rand.Text()
	k := copier{left: &Batch{bytes: i.Bytes, entries: math.MaxInt - 1}}
	err = k.copy(entry{cell, taken}, entry{dir, whole}, nil)
	if len(k.omitted) > 0 {
		err = errors.Join(err, errors.New(strings.Join(k.omitted, "; ")))
	}
	if err == nil {
		err = unix.Syncfs(dir) // the item is discarded next
	}
	if err == nil {
		err = rename(dir, whole, name)
	}
	if err != nil {
		return errors.Join(err, nofollow.RemoveAll(dir, whole))
	}
	return nil
}

// rename renames a directory entry without replacing one, also on file systems such as NFS that cannot do both
// atomically (EINVAL).
func rename(dir int, from, to string) error {
	err := unix.Renameat2(dir, from, dir, to, unix.RENAME_NOREPLACE)
	if !errors.Is(err, unix.EINVAL) {
		return err
	}
	if err = unix.Linkat(dir, from, dir, to, 0); err == nil {
		return unix.Unlinkat(dir, from, 0)
	}
	if errors.Is(err, unix.EPERM) { // a directory
		if err = unix.Mkdirat(dir, to, 0o700); err == nil {
			if err = unix.Renameat(dir, from, dir, to); err != nil {
				_ = unix.Unlinkat(dir, to, unix.AT_REMOVEDIR)
			}
		}
	}
	return err
}

func removeItem(quarantine, id string) error {
	dir, err := unix.Open(quarantine, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	return nofollow.RemoveAll(dir, id)
}
