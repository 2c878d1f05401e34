package fileworker

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// copyAttributes copies owner, mode and extended attributes. Changing the owner clears mode bits. It omits a group
// that this process cannot set if that grants no one more rights and costs others at most the right to write.
func copyAttributes(to, from *os.File) error {
	var have, want unix.Stat_t
	if err := unix.Fstat(int(from.Fd()), &want); err != nil {
		return err
	}
	if err := unix.Fstat(int(to.Fd()), &have); err != nil {
		return err
	}
	if have.Uid != want.Uid || have.Gid != want.Gid {
		err := unix.Fchown(int(to.Fd()), int(want.Uid), int(want.Gid))
		switch {
		case err == nil:
		case have.Uid != want.Uid: // not %w, whose advice is for other causes
			return fmt.Errorf("cannot keep the file's owner (uid %d, gid %d): %v; ask the owner to change it", want.Uid, want.Gid, err)
		case !dispensable(int(from.Fd()), want.Mode):
			return fmt.Errorf("cannot keep the file's group (gid %d), which has other rights than all: %v; write into the file with bash, which keeps its group", want.Gid, err)
		default:
			want.Mode &^= 0o020 &^ (want.Mode << 3) // the group keeps the rights of all others
		}
	}
	if err := copyXattrs(int(to.Fd()), int(from.Fd())); err != nil {
		return fmt.Errorf("cannot keep the file's extended attributes: %w", err)
	}
	return unix.Fchmod(int(to.Fd()), want.Mode&0o1777)
}

// dispensable reports whether the group of a file has the rights of all others, except writing, and there is no ACL.
func dispensable(file int, mode uint32) bool {
	group, others := mode>>3&0o7, mode&0o7
	_, err := unix.Fgetxattr(file, "system.posix_acl_access", nil)
	noList := errors.Is(err, unix.ENODATA) || errors.Is(err, unix.ENOTSUP)
	return noList && group&0o5 == others&0o5 && others&^group == 0
}

func copyXattrs(to, from int) error {
	names := make([]byte, 64<<10) // limit of the kernel (xattr(7))
	n, err := unix.Flistxattr(from, names)
	if errors.Is(err, unix.ENOTSUP) {
		return nil
	}
	if err != nil {
		return err
	}
	value := make([]byte, 64<<10)
	for name := range strings.SplitSeq(strings.TrimSuffix(string(names[:n]), "\x00"), "\x00") {
		switch name {
		case "", "security.capability", "security.ima", "security.evm":
			continue // these describe the old content
		}
		size, err := unix.Fgetxattr(from, name, value)
		if err == nil {
			err = unix.Fsetxattr(to, name, value[:size], 0)
		}
		// Only the system may set the labels of security modules.
		if err != nil && (strings.HasPrefix(name, "user.") || strings.HasPrefix(name, "system.")) {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}
