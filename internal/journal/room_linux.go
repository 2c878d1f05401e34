package journal

import (
	"io/fs"
	"syscall"
)

func writable(path string) error {
	const mayWrite = 2 // W_OK (access(2))
	return syscall.Access(path, mayWrite)
}

func allocated(info fs.FileInfo) int64 { return info.Sys().(*syscall.Stat_t).Blocks * 512 }

func roomAt(path string) (int64, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(path, &s); err != nil {
		return 0, err
	}
	return int64(min(s.Bavail, 1<<40)) * int64(s.Bsize), nil
}
