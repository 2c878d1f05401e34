package quarantine

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

	"github.com/toold/toold/sandbox/internal/nofollow"
)

// Batch is a set of removals, of which a limited amount is kept.
type Batch struct {
	quarantine string
	bytes      int64
	entries    int
	items      int
}

const mostDeep = 64

// NewBatch starts a batch in a quarantine.
func NewBatch(quarantine string) *Batch {
	return &Batch{quarantine: quarantine, bytes: mostBytes, entries: 10_000, items: 200}
}

// Take removes an entry of an open directory, and returns the path of its copy, or "" if there is none. The error is an
// ErrNotKept if the entry was removed and its copy is not complete. from is the original path. Nothing is renamed, so that a process that has the file open cannot reach the quarantine.
func (b *Batch) Take(dir int, name, from string) (kept string, err error) {
	if mode, err := nofollow.OpenUp(dir); err == nil && mode&0o700 != 0o700 {
		defer func() { _ = nofollow.Chmod(dir, mode) }()
	}
	if _, err := nofollow.Stat(dir, name); err != nil {
		return "", err
	}
	if b.items--; b.items >= 0 {
		kept, err = b.keep(dir, name, from)
	}
	if failed := nofollow.RemoveAll(dir, name); failed != nil {
		return kept, failed
	}
	if err != nil {
		err = fmt.Errorf("%w: %w", ErrNotKept, err)
	}
	return kept, err
}

// keep creates an item: the copy, the original path, and a list of what was not copied.
func (b *Batch) keep(dir int, name, from string) (kept string, err error) {
	stamp := time.Now().UTC().Format(cellLayout) + "-"
	cell := filepath.Join(b.quarantine, stamp+rand.Text()[:6]) // its name until it is complete
	if err := os.MkdirAll(cell, 0o700); err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(cell, takenFrom), []byte(from+"\n"), 0o600); err != nil {
		return "", err
	}
	to, err := unix.Open(cell, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	defer unix.Close(to)
	k := copier{left: b}
	err = k.copy(entry{dir, name}, entry{to, taken}, nil)
	if len(k.omitted) > 0 {
		err = errors.Join(err, os.WriteFile(filepath.Join(cell, notKept), []byte(strings.Join(k.omitted, "\n")+"\n"), 0o600))
	}
	if err == nil {
		cell, err = nameBySum(cell, stamp)
	}
	kept = filepath.Join(cell, taken)
	if _, missing := os.Lstat(kept); missing != nil {
		kept = filepath.Join(cell, notKept)
	}
	return kept, err
}

// nameBySum gives a complete item its name, and returns its directory.
func nameBySum(cell, stamp string) (string, error) {
	has, err := sum(cell)
	if err != nil {
		return cell, err
	}
	whole := filepath.Join(filepath.Dir(cell), stamp+has)
	if err = os.Rename(cell, whole); err != nil {
		return cell, err
	}
	return whole, nil
}

type entry struct {
	dir  int
	name string
}

type copier struct {
	left    *Batch
	omitted []string
}

func (k *copier) omit(path []string, name, why string) {
	if len(k.omitted) < 100 {
		k.omitted = append(k.omitted, fmt.Sprintf("%q: %s", strings.Join(append(path, name), "/"), why))
	}
}

// copy copies files and directories, which only their owner can access, and lists everything else as omitted. Errors
// are those of the quarantine.
func (k *copier) copy(from, to entry, path []string) error {
	in, err := nofollow.Stat(from.dir, from.name)
	if err != nil {
		return nil
	}
	if k.left.entries--; k.left.entries < 0 {
		k.omit(path, from.name, "too many files")
		return nil
	}
	switch {
	case in.Mode.IsDir():
		if len(path) < mostDeep {
			return k.copyDir(from, to, path)
		}
		k.omit(path, from.name, "too deep")
	case in.Mode.IsRegular():
		return k.copyFile(from, to, path)
	case in.Mode == fs.ModeSymlink:
		k.omit(path, from.name, fmt.Sprintf("a symbolic link to %q", linkTarget(from)))
	default:
		k.omit(path, from.name, "a FIFO, socket or device: "+in.Mode.String())
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

func (k *copier) copyDir(from, to entry, path []string) error {
	if err := unix.Mkdirat(to.dir, to.name, 0o700); err != nil {
		return err
	}
	src, err := nofollow.OpenDir(from.dir, from.name)
	if err != nil {
		k.omit(path, from.name, err.Error())
		return nil
	}
	in := os.NewFile(uintptr(src), from.name)
	defer in.Close()
	dst, err := nofollow.OpenIn(to.dir, to.name, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	defer unix.Close(dst)
	names, err := in.Readdirnames(k.left.entries + 1) // a partial list suffices
	if err != nil && err != io.EOF {
		k.omit(path, from.name, "not all of it: "+err.Error())
	}
	path = append(path[:len(path):len(path)], from.name)
	for _, name := range names {
		if err := k.copy(entry{src, name}, entry{dst, name}, path); err != nil {
			return err
		}
	}
	return nil
}

func (k *copier) copyFile(from, to entry, path []string) error {
	src, err := nofollow.OpenIn(from.dir, from.name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY)
	if err != nil {
		k.omit(path, from.name, err.Error())
		return nil
	}
	in := os.NewFile(uintptr(src), from.name)
	defer in.Close()
	st, err := nofollow.Stat(src, "")
	if err != nil || !st.Mode.IsRegular() || st.Size > k.left.bytes {
		k.omit(path, from.name, fmt.Sprintf("a file of %d bytes, too large", st.Size))
		return nil
	}
	dst, err := unix.Openat(to.dir, to.name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600|st.Bits&0o100)
	if err != nil {
		return err
	}
	out := os.NewFile(uintptr(dst), to.name)
	n, err := io.Copy(out, io.LimitReader(in, st.Size))
	k.left.bytes -= n
	return errors.Join(err, out.Close())
}
