package journal

import (
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"os"
	"sync"
	"syscall"

	"github.com/toold/toold/internal/paths"
)

// ballast is a file that reserves disk space for the returns of running calls.
type ballast struct {
	path string

	mu   sync.Mutex
	gone error // why it cannot be created; nil if it exists
	owed int   // returns being recorded in the space that it freed
}

const (
	ballastName  = "ballast"
	ballastBytes = 1 << 20
)

// open first removes a sparse file, which a restored backup may have, because it reserves nothing.
func (b *ballast) open() {
	if info, err := os.Lstat(b.path); err == nil && allocated(info) < info.Size() {
		_ = os.Remove(b.path)
	}
	b.gone = makeBallast(b.path)
}

// makeBallast writes random data, which no file system can compress.
func makeBallast(path string) error {
	if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() && info.Size() == ballastBytes {
		return nil
	}
	_ = os.Remove(path) // it may be a link, or larger
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return paths.Bare(err)
	}
	var seed [32]byte
	_, _ = rand.Read(seed[:]) // never fails
	text := make([]byte, ballastBytes)
	_, _ = mathrand.NewChaCha8(seed).Read(text) // never fails
	_, err = f.Write(text)
	if err = errors.Join(paths.Bare(err), f.Sync(), f.Close()); err != nil {
		_ = os.Remove(path) // free the space
	}
	return err
}

func (b *ballast) made() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.gone == nil
}

// release removes the file. It is not created again until settled is called.
func (b *ballast) release() {
	b.mu.Lock()
	defer b.mu.Unlock()
	_ = os.Remove(b.path)
	b.gone = syscall.ENOSPC
	b.owed++
}

func (b *ballast) settled() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.owed--
}

// restore recreates a file that any process has released. The caller has the recorder's turn, so that a failed attempt
// takes no space from others.
func (b *ballast) restore() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.owed == 0 {
		b.gone = makeBallast(b.path)
	}
	if b.gone != nil {
		return fmt.Errorf("there is no room for the %d bytes that are kept for the returns of calls that run: %w; make room on the disk", ballastBytes, b.gone)
	}
	return nil
}

// recordAnyway is recorder.record for calls that already run: on a full disk it uses the ballast.
func (j *Journal) recordAnyway(d durability, do func(*batch) error) error {
	err := j.write.record(d, do)
	if err != nil && isFull(err) {
		j.ballast.release() // another return that failed may have released it already
		defer j.ballast.settled()
		err = j.write.record(d, do)
	}
	return err
}

func isFull(err error) bool {
	var unsynced *unsyncedError
	noRoom := errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
	return noRoom && !errors.As(err, &unsynced)
}
