package chain

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"strings"
)

// A blob is a text too large for a record. Its file is named by its hash and the segment that refers to it,
// blobs/ab/abcd….00000001, and is removed with that segment.
const (
	blobsName  = "blobs"
	unfinished = ".new"
)

// ErrBlob says that a blob is missing or changed.
var ErrBlob = errors.New("it was removed or changed")

func blobName(h Hash, segment uint32) string {
	return fmt.Sprintf("%x.%08d", h[:], segment)
}

// blobSegment returns the segment in the name of a blob, even an unfinished one, or 0 for another name.
func blobSegment(name string) uint32 {
	hash, rest, _ := strings.Cut(strings.TrimSuffix(name, unfinished), ".")
	if _, err := hex.DecodeString(hash); err != nil || len(hash) != hex.EncodedLen(len(Hash{})) {
		return 0
	}
	return segmentNumber(rest + suffix)
}

func blobDir(dir Dir, first byte, create bool) (Dir, error) {
	all, err := dir.Sub(blobsName, create)
	if err != nil {
		return nil, err
	}
	return all.Sub(hex.EncodeToString([]byte{first}), create)
}

// Blob stores a text outside the log, for a record of this batch, and syncs it.
func (b *Batch) Blob(text []byte) (Hash, error) {
	h := Hash(sha256.Sum256(text))
	d, err := blobDir(b.dir, h[0], true)
	if err == nil {
		err = writeBlob(d, blobName(h, b.last.Segment), h, text)
	}
	if err != nil {
		return h, fmt.Errorf("cannot keep a text of %d bytes beside the log: %w", len(text), err)
	}
	b.beside += int64(len(text))
	return h, nil
}

func writeBlob(d Dir, name string, h Hash, text []byte) error {
	if _, err := readBlob(d, name, h, int64(len(text))); err == nil {
		return d.Sync() // its creator may have died before syncing
	}
	f, err := d.Create(name + unfinished)
	if err != nil {
		return err
	}
	err = f.Truncate(0)
	if err == nil {
		_, err = f.WriteAt(text, 0)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = d.Rename(name+unfinished, name)
	}
	if err != nil {
		return errors.Join(err, d.Remove(name+unfinished)) // free the space
	}
	return d.Sync()
}

// ReadBlob returns a blob of a segment. The error is ErrBlob if it is missing or changed, ErrNoMark
// if the segment was removed.
func ReadBlob(dir Dir, segment uint32, h Hash, size int64) ([]byte, error) {
	d, err := blobDir(dir, h[0], false)
	var text []byte
	if err == nil {
		text, err = readBlob(d, blobName(h, segment), h, size)
	}
	if errors.Is(err, errNoFile) {
		return nil, ErrBlob
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return text, err
	}
	f, err := dir.Open(segmentName(segment))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNoMark
	}
	if err != nil {
		return nil, err
	}
	return nil, errors.Join(ErrBlob, f.Close())
}

func readBlob(d Dir, name string, h Hash, size int64) (text []byte, err error) {
	f, err := d.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	is, err := f.Size()
	if err != nil {
		return nil, err
	}
	if is != size {
		return nil, ErrBlob
	}
	text = make([]byte, size)
	if n, err := f.ReadAt(text, 0); n < len(text) {
		return nil, err
	}
	if sha256.Sum256(text) != h {
		return nil, ErrBlob
	}
	return text, nil
}

func eachBlob(dir Dir, do func(d Dir, name string, segment uint32) error) error {
	all, err := dir.Sub(blobsName, false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	parts, err := all.Names()
	if err != nil {
		return err
	}
	for _, part := range parts {
		d, err := all.Sub(part, false)
		if err != nil {
			return err
		}
		names, err := d.Names()
		if err != nil {
			return err
		}
		for _, name := range names {
			if n := blobSegment(name); n > 0 {
				if err := do(d, name, n); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
