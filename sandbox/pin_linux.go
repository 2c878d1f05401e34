package sandbox

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/sandbox/internal/helper"
	"github.com/toold/toold/sandbox/internal/regular"
)

// Pin opens a directory by its canonical path, following no link, and returns which one it is, for
// Profile.Pinned. While held is open no other can be taken for it. The caller closes it.
func Pin(canonical string) (held *os.File, is string, err error) {
	fd, err := regular.OpenAt(unix.AT_FDCWD, canonical, unix.O_PATH|unix.O_DIRECTORY)
	switch {
	case errors.Is(err, unix.ENOTDIR):
		return nil, "", fmt.Errorf("%s is no folder", canonical)
	case errors.Is(err, unix.ELOOP):
		return nil, "", fmt.Errorf("there is a link in %s", canonical)
	case err != nil:
		return nil, "", fmt.Errorf("cannot open the folder %s: %w", canonical, err)
	}
	held = os.NewFile(uintptr(fd), canonical)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		held.Close()
		return nil, "", fmt.Errorf("cannot look at the folder %s: %w", canonical, err)
	}
	return held, helper.FolderID(uint64(st.Dev), st.Ino), nil
}
