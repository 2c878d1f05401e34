package journal

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	mathrand "math/rand/v2"
	"os"
	"sync"
	"syscall"
)

// ballast is a file that takes room on the disk, for the returns of calls that run when there
// is no other. It is made again when there is room, before a call is taken.
type ballast struct {
	path string

	mu   sync.Mutex
	gone error // why it cannot be made; nil while it is there
}

const (
	ballastName  = "ballast"
	ballastBytes = 1 << 20
)

// open makes the ballast when it is missing. Without room for it the journal can be read.
func (b *ballast) open() { b.gone = makeBallast(b.path) }

// makeBallast makes the file. Its text cannot be compressed.
func makeBallast(path string) error {
	if info, err := os.Stat(path); err == nil && info.Size() == ballastBytes {
		return nil
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return plain(err)
	}
	var seed [32]byte
	_, _ = rand.Read(seed[:]) // never fails
	text := make([]byte, ballastBytes)
	_, _ = mathrand.NewChaCha8(seed).Read(text) // never fails
	_, err = f.Write(text)
	if err = errors.Join(plain(err), f.Sync(), f.Close()); err != nil {
		_ = os.Remove(path) // it takes room
	}
	return err
}

// release gives its room to others. It reports false when it had none.
func (b *ballast) release() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := os.Remove(b.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false
	}
	before := b.gone
	b.gone = syscall.ENOSPC
	return before == nil
}

// restore makes it again after it was released. The caller has the turn of the recorder: what
// does not succeed takes no room from others.
func (b *ballast) restore() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.gone == nil {
		return nil
	}
	if b.gone = makeBallast(b.path); b.gone != nil {
		return fmt.Errorf("there is no room for the %d bytes that are kept for the returns of calls that run: %w; make room on the disk", ballastBytes, b.gone)
	}
	return nil
}

// recordAnyway records what a call that runs needs, on a full disk in the room of the ballast.
func (j *Journal) recordAnyway(d durability, do func(*batch) error) error {
	err := j.write.record(d, do)
	if isFull(err) && j.ballast.release() {
		err = j.write.record(d, do)
	}
	return err
}

// isFull reports whether something was not written because the disk is full.
func isFull(err error) bool {
	var unsynced *unsyncedError
	return errors.Is(err, syscall.ENOSPC) && !errors.As(err, &unsynced)
}
