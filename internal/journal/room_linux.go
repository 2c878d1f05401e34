package journal

import "syscall"

// writable returns an error unless this process may write a file or directory.
func writable(path string) error {
	const mayWrite = 2 // W_OK of access(2)
	return syscall.Access(path, mayWrite)
}

// roomAt is how many bytes the file system of a path has room for.
func roomAt(path string) (int64, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(path, &s); err != nil {
		return 0, err
	}
	return int64(min(s.Bavail, 1<<40)) * int64(s.Bsize), nil
}
