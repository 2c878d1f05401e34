package protect

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// allowance is how much may still be kept of what is removed.
type allowance struct {
	bytes   int64
	entries int
	items   int
}

// Of all that one call has left.
const (
	mostBytes   = 64 << 20
	mostEntries = 10_000
	mostItems   = 200
	mostDeep    = 64
)

// allow is what may be kept of what one call has left.
func allow() *allowance { return &allowance{mostBytes, mostEntries, mostItems} }

// takeAway copies what is in an open directory under a name into the quarantine, as far as
// the allowance reaches, and removes it. Nothing is moved: who holds what was there open
// holds nothing of the quarantine.
func takeAway(dir int, name, path, quarantine string, left *allowance) (kept string, err error) {
	if mode, err := openUp(dir); err == nil && mode&0o700 != 0o700 {
		defer func() { _ = changeMode(dir, mode) }()
	}
	if _, err := statAt(dir, name); err != nil {
		return "", err
	}
	if left.items--; left.items >= 0 {
		kept, err = keep(dir, name, path, quarantine, left)
	}
	return kept, errors.Join(err, removeTree(dir, name))
}

// keep copies what is in an open directory under a name into an item of its own, beside
// the path where it was and a list of what was not copied.
func keep(dir int, name, path, quarantine string, left *allowance) (kept string, err error) {
	cell := filepath.Join(quarantine, time.Now().UTC().Format(cellLayout)+"-"+rand.Text()[:6])
	if err := os.MkdirAll(cell, 0o700); err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(cell, takenFrom), []byte(path+"\n"), 0o600); err != nil {
		return "", err
	}
	to, err := unix.Open(cell, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	defer unix.Close(to)
	k := keeper{left: left}
	err = k.copy(entry{dir, name}, entry{to, taken}, nil)
	if len(k.omitted) > 0 {
		err = errors.Join(err, os.WriteFile(filepath.Join(cell, notKept), []byte(strings.Join(k.omitted, "\n")+"\n"), 0o600))
	}
	kept = filepath.Join(cell, taken)
	if _, missing := os.Lstat(kept); missing != nil {
		kept = filepath.Join(cell, notKept)
	}
	return kept, err
}

// entry is a name in an open directory.
type entry struct {
	dir  int
	name string
}

// keeper copies a tree.
type keeper struct {
	left    *allowance
	omitted []string
}

// omit notes what is not copied.
func (k *keeper) omit(path []string, name, why string) {
	if len(k.omitted) < 100 {
		k.omitted = append(k.omitted, fmt.Sprintf("%q: %s", strings.Join(append(path, name), "/"), why))
	}
}

// copy copies files and directories, which get no rights but their owner's, and notes
// everything else. An error is one of the quarantine.
func (k *keeper) copy(from, to entry, path []string) error {
	in, err := statAt(from.dir, from.name)
	if err != nil {
		return nil // it is gone
	}
	if k.left.entries--; k.left.entries < 0 {
		k.omit(path, from.name, "too many files")
		return nil
	}
	switch {
	case in.mode.IsDir():
		if len(path) < mostDeep {
			return k.copyDir(from, to, path)
		}
		k.omit(path, from.name, "too deep")
	case in.mode.IsRegular():
		return k.copyFile(from, to, path)
	case in.mode == fs.ModeSymlink:
		k.omit(path, from.name, fmt.Sprintf("a symbolic link to %q", linkTarget(from)))
	default:
		k.omit(path, from.name, "a FIFO, socket or device: "+in.mode.String())
	}
	return nil
}

func linkTarget(e entry) string {
	buf := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(e.dir, e.name, buf)
	if err != nil {
		return ""
	}
	return string(buf[:n])
}

func (k *keeper) copyDir(from, to entry, path []string) error {
	if err := unix.Mkdirat(to.dir, to.name, 0o700); err != nil {
		return err
	}
	src, err := openDir(from.dir, from.name)
	if err != nil {
		k.omit(path, from.name, err.Error())
		return nil
	}
	in := os.NewFile(uintptr(src), from.name)
	defer in.Close()
	dst, err := openIn(to.dir, to.name, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	defer unix.Close(dst)
	names, _ := in.Readdirnames(k.left.entries + 1) // what could be read counts
	path = append(path[:len(path):len(path)], from.name)
	for _, name := range names {
		if err := k.copy(entry{src, name}, entry{dst, name}, path); err != nil {
			return err
		}
	}
	return nil
}

func (k *keeper) copyFile(from, to entry, path []string) error {
	src, err := openIn(from.dir, from.name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY)
	if err != nil {
		k.omit(path, from.name, err.Error())
		return nil
	}
	in := os.NewFile(uintptr(src), from.name)
	defer in.Close()
	st, err := statAt(src, "")
	if err != nil || !st.mode.IsRegular() || st.size > k.left.bytes {
		k.omit(path, from.name, fmt.Sprintf("a file of %d bytes, too large", st.size))
		return nil
	}
	dst, err := unix.Openat(to.dir, to.name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600|st.bits&0o100)
	if err != nil {
		return err
	}
	out := os.NewFile(uintptr(dst), to.name)
	n, err := io.Copy(out, io.LimitReader(in, st.size))
	k.left.bytes -= n
	return errors.Join(err, out.Close())
}
