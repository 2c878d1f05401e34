//go:build linux

package main

import (
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// mounts are the attempts on the view of the file system.
func mounts() map[string]attempt {
	return map[string]attempt{
		"fsmount": func(args) (string, int, error) {
			n, err := unix.Fsopen("tmpfs", 0)
			return "fsopen", n, err
		},
		"umount": func(a args) (string, int, error) {
			return "umount2", 0, unix.Unmount(a.text(0), unix.MNT_DETACH)
		},
		"remount": func(a args) (string, int, error) {
			return "remount", 0, unix.Mount("none", a.text(0), "", unix.MS_REMOUNT|unix.MS_BIND, "")
		},
		"msetattr": func(a args) (string, int, error) {
			return "mount_setattr", 0, unix.MountSetattr(unix.AT_FDCWD, a.text(0), unix.AT_RECURSIVE, &unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY})
		},
		"bind": func(a args) (string, int, error) {
			return "bind mount", 0, unix.Mount(a.text(0), a.text(1), "", unix.MS_BIND, "")
		},
		"chroot": changeRoot, "handle": openByHandle, "tmpfile": linkOut, "memfd": runFromMemory,
		"xattr": func(a args) (string, int, error) {
			return "setxattr", 0, unix.Setxattr(a.text(0), "user.esc", []byte("1"), 0)
		},
		"mknod": func(a args) (string, int, error) {
			return "mknod", 0, unix.Mknod(a.text(0), unix.S_IFBLK|0o600, 254<<8)
		},
		"uring-open": ringOpen,
	}
}

// changeRoot leaves a root that it sets below its folder.
func changeRoot(args) (string, int, error) {
	os.Mkdir("cr", 0o755)
	out, err := unix.Open("/", unix.O_RDONLY, 0)
	if err == nil {
		err = unix.Chroot("cr")
	}
	if err != nil {
		return "chroot", -1, err
	}
	unix.Fchdir(out)
	for range 50 {
		unix.Chdir("..")
	}
	return "chroot", 0, unix.Chroot(".")
}

func openByHandle(a args) (string, int, error) {
	handle, _, err := unix.NameToHandleAt(unix.AT_FDCWD, a.text(0), 0)
	if err != nil {
		return "name_to_handle_at", -1, err
	}
	at, err := unix.Open(".", unix.O_RDONLY, 0)
	if err != nil {
		return "open .", -1, err
	}
	fd, err := unix.OpenByHandleAt(at, handle, unix.O_RDWR)
	return "open_by_handle_at", fd, err
}

// linkOut gives a file without a name one that lies elsewhere.
func linkOut(a args) (string, int, error) {
	fd, err := unix.Open(a.text(0), unix.O_TMPFILE|unix.O_WRONLY, 0o600)
	if err != nil {
		return "O_TMPFILE", -1, err
	}
	unix.Write(fd, []byte("x"))
	return "linkat", 0, unix.Linkat(unix.AT_FDCWD, "/proc/self/fd/"+itoa(fd), unix.AT_FDCWD, a.text(1), unix.AT_SYMLINK_FOLLOW)
}

func runFromMemory(a args) (string, int, error) {
	fd, err := unix.MemfdCreate("x", 0)
	if err != nil {
		return "memfd_create", -1, err
	}
	shell, err := os.ReadFile("/bin/sh")
	if err != nil {
		return "read /bin/sh", -1, err
	}
	unix.Write(fd, shell)
	return "execv memfd", -1, unix.Exec("/proc/self/fd/"+itoa(fd), []string{"sh", "-c", a.text(0)}, os.Environ())
}

// getfattr and setfattr stand in for the tools of that name.
func getfattr(a args) int {
	if len(a) < 3 || a[0] != "-n" {
		return 2
	}
	b := make([]byte, 4096)
	n, err := unix.Getxattr(a[len(a)-1], a[1], b)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Printf("# file: %s\n%s=%q\n", a[len(a)-1], a[1], b[:n])
	return 0
}

func setfattr(a args) int {
	if len(a) != 5 || a[0] != "-n" || a[2] != "-v" {
		return 2
	}
	if err := unix.Setxattr(a[4], a[1], []byte(a[3]), 0); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// exchange swaps two names again and again until it is killed.
func exchange(a args) int {
	for {
		if err := unix.Renameat2(unix.AT_FDCWD, a.text(0), unix.AT_FDCWD, a.text(1), unix.RENAME_EXCHANGE); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
}

// withoutLandlock runs a command for which the kernel has no Landlock, as an outer
// sandbox may have it.
func withoutLandlock(a args) int {
	const allow, refuse = 0x7fff0000, 0x00050000 | uint32(unix.EPERM)
	program := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 1, K: unix.SYS_LANDLOCK_CREATE_RULESET},
		{Code: unix.BPF_RET | unix.BPF_K, K: refuse},
		{Code: unix.BPF_RET | unix.BPF_K, K: allow},
	}
	fprog := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
	if err == nil {
		_, err = call(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&fprog)))
	}
	if err == nil {
		err = unix.Exec(a.text(0), a, os.Environ())
	}
	fmt.Fprintln(os.Stderr, err)
	return 1
}
