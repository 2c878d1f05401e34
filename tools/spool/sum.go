package spool

import (
	"crypto/sha256"
	"errors"
	"hash"
	"io"
	"io/fs"
	"os"
)

// Sum returns the checksum of a call's files, or "" if their directory does not exist. A missing file counts as empty.
// Anything but a regular file makes the checksum invalid.
func Sum(dir string) (string, error) {
	var all [3]digest
	for i, name := range fileNames {
		f, err := openFile(dir, name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if errors.Is(err, errNoFile) {
			all[i].Write([]byte(err.Error()))
			continue
		}
		if err != nil {
			return "", err
		}
		_, err = io.Copy(&all[i], f)
		if err = errors.Join(err, f.Close()); err != nil {
			return "", err
		}
	}
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return "", nil // it may have been removed during reading
	}
	return total(all), nil
}

// Nothing returns the checksum of a call without output.
func Nothing() string { return total([3]digest{}) }

// Sum returns the checksum of the files after Close, or "" if there are none.
func (c *Capture) Sum() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sum
}

// total returns the checksum of digests in the order of fileNames.
func total(files [3]digest) string {
	all := sha256.New()
	for _, d := range files {
		all.Write(d.sum())
	}
	return string(all.Sum(nil))
}

// maskedLater is the maximum distance from the end of bytes that may still be masked.
const maskedLater = 4 << 10

// digest is the SHA-256 of a file whose end may still change.
type digest struct {
	hash hash.Hash // nil before the first byte
	end  []byte    // not yet hashed
}

func (d *digest) Write(p []byte) (int, error) {
	if d.hash == nil && len(p) > 0 {
		d.hash = sha256.New()
	}
	if d.end = append(d.end, p...); len(d.end) > 2*maskedLater {
		settled := len(d.end) - maskedLater
		d.hash.Write(d.end[:settled])
		d.end = d.end[:copy(d.end, d.end[settled:])]
	}
	return len(p), nil
}

// mask overwrites bytes, beginning at offset before relative to the end, if they are not yet hashed.
func (d *digest) mask(before int64, mask []byte) {
	if from := int64(len(d.end)) + before; from >= 0 {
		copy(d.end[from:], mask)
	}
}

func (d *digest) sum() []byte {
	if d.hash == nil {
		return make([]byte, sha256.Size)
	}
	d.hash.Write(d.end)
	return d.hash.Sum(nil)
}
