package chain

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/toold/toold/internal/paths"
)

// Dir is a directory of files.
type Dir interface {
	io.Closer
	// Open opens a file for reading and writing or, on a read-only file system, for reading. The error is
	// fs.ErrNotExist if it is missing.
	Open(name string) (File, error)
	// Create is Open, but creates a missing file.
	Create(name string) (File, error)
	Names() ([]string, error)
	// Rename replaces an existing file.
	Rename(from, to string) error
	Remove(name string) error
	// Sub opens a subdirectory. If it is missing, Sub creates and syncs it or, without create, returns fs.ErrNotExist.
	Sub(name string, create bool) (Dir, error)
	// Sync makes the names of all files durable.
	Sync() error
	// Same reports whether the file's name still refers to this open file, and the present size under that name.
	Same(f File) (size int64, same bool, err error)
	// Lock excludes all other users of the directory until unlock. It returns ErrBusy after wait.
	Lock(wait time.Duration) (unlock func(), err error)
}

// File is an open file of a Dir.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Size() (int64, error)
	Truncate(size int64) error
	// Sync makes content and size durable.
	Sync() error
}

// ErrBusy says that another process holds the lock of a directory.
var ErrBusy = errors.New("another process is writing, and does not end")

type directory struct {
	path string
	lock *os.File // nil before the first Lock
}

const lockName = "lock"

// Directory opens a directory of the file system. It creates a missing one with mode 0700.
func Directory(path string) (Dir, error) {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		parent := directory{path: filepath.Dir(path)}
		if err := errors.Join(os.MkdirAll(path, 0o700), parent.Sync()); err != nil {
			return nil, err
		}
	}
	return &directory{path: path}, nil
}

func (d *directory) Close() error {
	if d.lock == nil {
		return nil
	}
	return d.lock.Close()
}

func (d *directory) Open(name string) (File, error) { return d.open(name, os.O_RDWR) }

func (d *directory) Create(name string) (File, error) { return d.open(name, os.O_RDWR|os.O_CREATE) }

func (d *directory) open(name string, flags int) (File, error) {
	path := filepath.Join(d.path, name)
	f, readOnly, err := openFile(path, flags)
	if err != nil {
		return nil, kindError(path, err)
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errNoFile
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return diskFile{f, info, readOnly}, nil
}

// errNoFile says that the name belongs to something else than a regular file or directory, while fs.ErrNotExist says
// that the name is free.
var errNoFile = errors.New("it is no regular file, or a link to none")

// kindError returns errNoFile for an error caused by the file type.
func kindError(path string, err error) error {
	for _, kind := range []error{syscall.EISDIR, syscall.ENOTDIR, syscall.ENXIO, syscall.ELOOP} {
		if errors.Is(err, kind) {
			return errNoFile
		}
	}
	if info, there := os.Lstat(path); errors.Is(err, fs.ErrNotExist) && there == nil && info.Mode()&fs.ModeSymlink != 0 {
		return errNoFile
	}
	return err
}

// openFile opens a file with flags or, on a read-only file system, only for reading. It does not block on a FIFO.
func openFile(path string, flags int) (f *os.File, readOnly bool, err error) {
	f, err = os.OpenFile(path, flags|syscall.O_NONBLOCK, 0o600)
	if errors.Is(err, syscall.EROFS) {
		if r, err := os.Open(path); err == nil { // no FIFO: the kernel lets one be opened for writing
			return r, true, nil
		}
	}
	return f, false, err
}

func readOnly(f File) bool {
	d, ok := f.(diskFile)
	return ok && d.readOnly
}

func (d *directory) Names() ([]string, error) {
	entries, err := os.ReadDir(d.path)
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, err
}

func (d *directory) Rename(from, to string) error {
	return paths.Bare(os.Rename(filepath.Join(d.path, from), filepath.Join(d.path, to)))
}

func (d *directory) Remove(name string) error { return os.Remove(filepath.Join(d.path, name)) }

func (d *directory) Sub(name string, create bool) (Dir, error) {
	sub := &directory{path: filepath.Join(d.path, name)}
	if !create {
		info, err := os.Stat(sub.path)
		if err == nil && !info.IsDir() {
			err = errNoFile
		}
		return sub, kindError(sub.path, err)
	}
	if err := os.Mkdir(sub.path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	return sub, d.Sync() // its creator may have died before syncing
}

func (d *directory) Sync() error {
	f, err := os.Open(d.path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

func (d *directory) Same(f File) (size int64, same bool, err error) {
	file := f.(diskFile)
	now, err := os.Stat(file.Name())
	if errors.Is(err, fs.ErrNotExist) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, err
	}
	return now.Size(), os.SameFile(now, file.opened), nil
}

// Another process holds the lock only while it writes some kilobytes.
const (
	firstRetry = 20 * time.Microsecond
	lastRetry  = 5 * time.Millisecond
)

func (d *directory) Lock(wait time.Duration) (unlock func(), err error) {
	if d.lock == nil {
		path := filepath.Join(d.path, lockName)
		if d.lock, _, err = openFile(path, os.O_RDWR|os.O_CREATE); err != nil {
			return nil, kindError(path, err)
		}
	}
	for begun, pause := time.Now(), firstRetry; ; pause = min(2*pause, lastRetry) {
		switch locked, err := lockFile(d.lock, true); {
		case err != nil:
			return nil, err
		case locked:
			return func() { _, _ = lockFile(d.lock, false) }, nil
		case time.Since(begun) > wait:
			return nil, ErrBusy
		}
		time.Sleep(pause)
	}
}

type diskFile struct {
	*os.File
	opened fs.FileInfo // from the time of opening; see Same

	readOnly bool
}

func (f diskFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

func (f diskFile) Sync() error { return syncData(f.File) }

func (f diskFile) WriteAt(p []byte, offset int64) (int, error) {
	n, err := f.File.WriteAt(p, offset)
	return n, paths.Bare(err)
}

func (f diskFile) Truncate(size int64) error { return paths.Bare(f.File.Truncate(size)) }
