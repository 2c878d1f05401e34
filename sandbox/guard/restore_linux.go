package guard

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// Restore puts an item back to where it was taken from and returns that place. It
// follows no link, and replaces nothing. A Guard whose roots hold the place takes it
// away again if a call runs meanwhile.
func Restore(quarantine, id string) (string, error) {
	i, ok := item(quarantine, id)
	if !ok || !filepath.IsAbs(i.From) || filepath.Clean(i.From) != i.From {
		return "", fmt.Errorf("the quarantine has no item %q that could be put back", id)
	}
	if err := i.putBack(); err != nil {
		return "", fmt.Errorf("cannot put %s back to %s: %w; it is still in %s", id, i.From, err, i.Kept)
	}
	return i.From, Discard(quarantine, id)
}

func (i Item) putBack() error {
	cell, err := openFolder(filepath.Dir(i.Kept))
	if err != nil {
		return err
	}
	defer unix.Close(cell)
	dir, err := openFolder(filepath.Dir(i.From))
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	name := filepath.Base(i.From)
	err = unix.Renameat2(cell, taken, dir, name, unix.RENAME_NOREPLACE)
	if !errors.Is(err, unix.EXDEV) && !errors.Is(err, unix.EINVAL) {
		return err
	}
	if i.Bytes > mostKept {
		return fmt.Errorf("it lies on another file system and has more than %d bytes: copy it by hand", mostKept)
	}
	if err := unix.Fstatat(dir, name, &unix.Stat_t{}, unix.AT_SYMLINK_NOFOLLOW); err == nil {
		return os.ErrExist
	}
	return moveAcross(cell, taken, "/proc/self/fd/"+strconv.Itoa(dir)+"/"+name)
}
