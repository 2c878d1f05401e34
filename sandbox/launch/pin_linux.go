package launch

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/sandbox/internal/helper"
	"github.com/toold/toold/sandbox/internal/nofollow"
)

// Pin opens a directory by its canonical path without following links, and returns its identity for Profile.Pinned.
// The identity is unique while the file is open. The caller must close the file.
func Pin(canonical string) (held *os.File, is string, err error) {
	fd, err := nofollow.Open(canonical, unix.O_PATH|unix.O_DIRECTORY)
	switch {
	case errors.Is(err, unix.ENOTDIR):
		return nil, "", fmt.Errorf("%s is not a directory", canonical)
	case errors.Is(err, unix.ELOOP):
		return nil, "", fmt.Errorf("the path %s contains a symbolic link", canonical)
	case err != nil:
		return nil, "", fmt.Errorf("cannot open the directory %s: %w", canonical, err)
	}
	held = os.NewFile(uintptr(fd), canonical)
	if is, err = helper.Identity(fd); err != nil {
		held.Close()
		return nil, "", fmt.Errorf("cannot examine the directory %s: %w", canonical, err)
	}
	return held, is, nil
}
