package helper

import "golang.org/x/sys/unix"

// protectAll makes paths below writable roots read-only by mounting each on itself. It skips missing paths; a path
// that has become a link is an error.
func protectAll(paths []string) error {
	for _, path := range paths {
		err := protect(path)
		if except(err, unix.ENOENT, unix.ENOTDIR) != nil {
			return stage("protect "+path, err)
		}
	}
	return nil
}

func protect(path string) error {
	t, err := take(path, true)
	if err != nil {
		return err
	}
	defer unix.Close(t.fd)
	if err := setAttr(t.fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, attrLocked); err != nil {
		return err
	}
	to, err := locate(path)
	if err != nil {
		return err
	}
	defer unix.Close(to)
	return unix.MoveMount(t.fd, "", to, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
}
