package spool

import (
	"crypto/sha256"
	"errors"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/toold/toold/tools"
)

// Sum returns a checksum of the files of a call, as Capture.Sum does; "" if there are none.
func Sum(dir string) (string, error) {
	var all [3]digest
	for i, name := range []string{tools.Stdout.String(), tools.Stderr.String(), orderName} {
		f, err := os.Open(filepath.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) {
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
		return "", nil // it may have been removed meanwhile
	}
	return sumOf(&all[0], &all[1], &all[2]), nil
}

// Sum returns a checksum of what was written to files; "" if nothing was. Close comes first.
func (c *Capture) Sum() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sum
}

func sumOf(stdout, stderr, order *digest) string {
	if stdout.hash == nil && stderr.hash == nil {
		return ""
	}
	all := sha256.New()
	for _, d := range []*digest{stdout, stderr, order} {
		all.Write(d.sum())
	}
	return string(all.Sum(nil))
}

// maskedLater is the largest distance from the end at which bytes may become part of a secret.
const maskedLater = 4 << 10

// digest is the SHA-256 of a file whose end may still be overwritten.
type digest struct {
	hash hash.Hash // nil before the first byte
	end  []byte    // not hashed yet
}

// Write adds bytes to the file.
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

// mask overwrites the end, from an offset before it.
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
