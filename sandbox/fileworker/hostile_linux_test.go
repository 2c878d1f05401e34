package fileworker

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/sandbox/internal/fileops"
)

func TestAFileThatWasChangedInPlaceIsNotReplaced(t *testing.T) {
	t.Parallel()
	inEveryWay(t, func(t *testing.T, a *access) {
		root := a.tree(map[string]string{"f": "old"})
		path := filepath.Join(root, "f")
		old := a.must(path)
		seen := must.Get(old.Stat())(t)
		for _, change := range []func() error{
			func() error { return os.WriteFile(path, []byte("longer than it was"), 0o644) },
			func() error { return os.Chmod(path, 0o600) },
		} {
			must.Do(t, change())
			err := a.replace(path, Replacement{Data: []byte("new"), Old: old, Seen: seen})
			if !errors.Is(err, fileops.ErrChanged) || content(t, path) != "longer than it was" {
				t.Errorf("got %v, the file holds %q", err, content(t, path))
			}
			only(t, root, "f")
		}
		if err := a.rewrite(path, "new"); err != nil || content(t, path) != "new" {
			t.Errorf("after another look: %v", err)
		}
	})
}

// The kernel's log is a regular file whose reader waits for the next message.
func TestReadingNeverWaits(t *testing.T) {
	t.Parallel()
	f, err := openFile("/proc/kmsg")
	if err != nil {
		t.Skipf("the kernel's log cannot be read here: %v", err)
	}
	defer f.Close()
	buffer := make([]byte, 64<<10)
	for range 10_000 { // what is there already comes first
		if _, err = f.Read(buffer); err != nil {
			break
		}
	}
	if !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EPERM) {
		t.Errorf("reading ended with %v", err)
	}
}

// To open the reading end of a pipe wakes whoever waits to write into it.
func TestAPipeIsNotEvenOpened(t *testing.T) {
	t.Parallel()
	inEveryWay(t, func(t *testing.T, a *access) {
		pipe := filepath.Join(a.tree(nil), "pipe")
		must.Do(t, unix.Mkfifo(pipe, 0o600))
		for range 100 {
			if _, err := a.open(pipe); err == nil {
				t.Fatal("opened")
			}
			fd, err := unix.Open(pipe, unix.O_WRONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
			if !errors.Is(err, unix.ENXIO) {
				unix.Close(fd)
				t.Fatalf("the pipe has a reader: %v", err)
			}
		}
	})
}

func TestAccessListsAreKept(t *testing.T) {
	t.Parallel()
	inEveryWay(t, func(t *testing.T, a *access) {
		root := a.tree(map[string]string{"f": "old"})
		path := filepath.Join(root, "f")
		// Version 2; owner rw, user 4242 r, group r, mask r, others none (acl(5)).
		list := "\x02\x00\x00\x00" + "\x01\x00\x06\x00\xff\xff\xff\xff" + "\x02\x00\x04\x00\x92\x10\x00\x00" +
			"\x04\x00\x04\x00\xff\xff\xff\xff" + "\x10\x00\x04\x00\xff\xff\xff\xff" + "\x20\x00\x00\x00\xff\xff\xff\xff"
		if err := unix.Setxattr(path, "system.posix_acl_access", []byte(list), 0); err != nil {
			t.Skipf("no access lists here: %v", err)
		}
		must.Do(t, a.rewrite(path, "new"))
		value := make([]byte, 100)
		n, err := unix.Getxattr(path, "system.posix_acl_access", value)
		if err != nil || string(value[:n]) != list {
			t.Errorf("the list is %q, %v", value[:max(n, 0)], err)
		}
		if info, err := os.Stat(path); err != nil || info.Mode() != 0o640 {
			t.Errorf("mode %v, %v", info.Mode(), err)
		}
	})
}

// Each refusal leaves the old file, no other, and names the next step.
func TestWhatCannotBeWrittenIsLeftAndExplained(t *testing.T) {
	t.Parallel()
	inEveryWay(t, func(t *testing.T, a *access) {
		refused := func(name string, err error, root, want string, left ...string) {
			t.Helper()
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v; want %q", name, err, want)
			}
			only(t, root, left...)
			for _, f := range left {
				if got := content(t, filepath.Join(root, f)); got != "old" {
					t.Errorf("%s: %s holds %q", name, f, got)
				}
			}
		}
		root := a.tree(map[string]string{"f": "old"})
		long := filepath.Join(root, strings.Repeat("n", 256))
		refused("long name", a.replace(long, Replacement{Data: []byte("x")}), root, "255 bytes", "f")
		deep := filepath.Join(root, strings.Repeat("d/", 2100)+"f")
		refused("long path", a.replace(deep, Replacement{Data: []byte("x")}), root, "255 bytes", "f")

		if os.Geteuid() != 0 {
			must.Do(t, os.Chmod(root, 0o555))
			t.Cleanup(func() { os.Chmod(root, 0o755) })
			refused("folder", a.rewrite(filepath.Join(root, "f"), "new"), root, "its directory is not writable", "f")
			return
		}
		if err := immutable(root, true); err != nil {
			t.Skipf("nothing can be made immutable here: %v", err)
		}
		defer immutable(root, false)
		refused("immutable", a.rewrite(filepath.Join(root, "f"), "new"), root, "lsattr", "f")
	})
}

const immutableFlag = 0x10 // FS_IMMUTABLE_FL of linux/fs.h

func immutable(path string, on bool) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	flags, err := unix.IoctlGetInt(int(f.Fd()), unix.FS_IOC_GETFLAGS)
	if err != nil {
		return err
	}
	flags &^= immutableFlag
	if on {
		flags |= immutableFlag
	}
	return unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, flags)
}

const inNamespace = "TOOLD_TEST_MOUNTS"

// TestFileSystemsThatFillUpOrCannotBeWritten runs itself again where even an
// ordinary user may mount: in namespaces of its own.
func TestFileSystemsThatFillUpOrCannotBeWritten(t *testing.T) {
	if root := os.Getenv(inNamespace); root != "" {
		inEveryWay(t, func(t *testing.T, a *access) { mounts(t, a, filepath.Join(root, a.way)) })
		return
	}
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^TestFileSystemsThatFillUpOrCannotBeWritten$", "-test.v")
	cmd.Env = append(os.Environ(), inNamespace+"="+must.Tree(t, map[string]string{"own/small/": "", "own/fixed/": "", "worker/small/": "", "worker/fixed/": ""}))
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
	}
	out, err := cmd.CombinedOutput()
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOSPC) {
		t.Skipf("no user namespaces here: %v", err)
	}
	if err != nil || !strings.Contains(string(out), "--- PASS") {
		t.Errorf("%v\n%s", err, out)
	}
}

func mounts(t *testing.T, a *access, root string) {
	a.p.Workspace = root
	small, fixed := filepath.Join(root, "small"), filepath.Join(root, "fixed")
	for _, dir := range []string{small, fixed} {
		must.Do(t, unix.Mount("tmpfs", dir, "tmpfs", 0, "size=64k"))
		must.Do(t, os.WriteFile(filepath.Join(dir, "f"), []byte("old"), 0o644))
	}
	still := func(name string, err error, dir, want string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %q", name, err, want)
		}
		if got := content(t, filepath.Join(dir, "f")); got != "old" {
			t.Errorf("%s: the old file holds %q", name, got)
		}
		only(t, dir, "f")
	}
	big := strings.Repeat("x", 1<<20)
	still("full", a.rewrite(filepath.Join(small, "f"), big), small, "no space left on device; the old file, if there was one, is as it was")
	still("full, new", a.replace(filepath.Join(small, "new"), Replacement{Data: []byte(big)}), small, "df -h")
	must.Do(t, unix.Mount("", fixed, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""))
	still("read-only", a.rewrite(filepath.Join(fixed, "f"), "new"), fixed, "read-only file system; write somewhere else")
	still("read-only, new", a.replace(filepath.Join(fixed, "a/b"), Replacement{Data: []byte("x"), Parents: true}), fixed, "read-only file system")

	file := filepath.Join(small, "f")
	must.Do(t, unix.Mount(file, file, "", unix.MS_BIND, ""))
	still("a mount", a.rewrite(file, "new"), small, "is a mount of its own")
}

// A file may become shorter or longer while it is read. Neither hangs.
func TestAFileThatChangesWhileItIsReadEnds(t *testing.T) {
	t.Parallel()
	inEveryWay(t, func(t *testing.T, a *access) {
		root := a.tree(map[string]string{"f": strings.Repeat("x", 1<<20)})
		path := filepath.Join(root, "f")
		f := a.must(path)
		must.Get(io.CopyN(io.Discard, f, 1000))(t)
		must.Do(t, os.Truncate(path, 10))
		if n, err := io.Copy(io.Discard, f); n != 0 || err != nil {
			t.Errorf("%d bytes, %v", n, err)
		}
		must.Do(t, os.WriteFile(path, []byte(fmt.Sprintf("%01010d", 1)), 0o644))
		if n, err := io.Copy(io.Discard, f); n != 10 || err != nil {
			t.Errorf("%d bytes came after it grew, %v", n, err)
		}
	})
}
