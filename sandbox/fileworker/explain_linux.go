package fileworker

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// explain adds to an error what failed and what to do next. After a failed write, the old file is unchanged.
func explain(verb, path string, err error) error {
	switch {
	case errors.Is(err, unix.ELOOP):
		return fmt.Errorf("cannot %s %s: a symbolic link appeared in the path after the call was judged", verb, path)
	case errors.Is(err, unix.ENOSYS):
		return fmt.Errorf("cannot %s %s: the kernel has no openat2 (Linux 5.6 or newer is needed)", verb, path)
	}
	return fmt.Errorf("cannot %s %s: %w%s", verb, path, err, remedy(err))
}

func remedy(err error) string {
	for _, r := range []struct {
		no   unix.Errno
		text string
	}{
		{unix.ENOSPC, "the old file, if there was one, is as it was; free some space (df -h) and make the call again"},
		{unix.EDQUOT, "the old file, if there was one, is as it was; free some space (quota -s) and make the call again"},
		{unix.EFBIG, "toold was started with a limit on the size of files (ulimit -f)"},
		{unix.EROFS, "write somewhere else, or ask the user"},
		{unix.EPERM, "it or its directory may be immutable (check with lsattr -d); ask the user"},
		{unix.EBUSY, "it is a mount of its own, as files that are passed into containers are, and cannot be replaced; write into it with bash"},
		{unix.EACCES, "ask the user to change the permissions"},
		{unix.ENAMETOOLONG, "a name has at most 255 bytes and a path 4095"},
		{unix.EAGAIN, "there is nothing to read now, and reading would have to wait"},
	} {
		if errors.Is(err, r.no) {
			return "; " + r.text
		}
	}
	return ""
}
