package chain

import (
	"bytes"
	"encoding/hex"
	"io/fs"
	"strings"
	"time"
)

// Copy is a read-only copy of a log for Verify, Salvage and ReadBlob, which need only the methods defined here.
type Copy struct {
	Dir      // nil; declares the other methods
	Segments []uint32
	// Read returns the concatenated records of a segment, or with text the blob of that hash. The
	// error is fs.ErrNotExist if there is none.
	Read func(segment uint32, text *Hash) ([]byte, error)
}

// Sub returns c: segments and blobs share one namespace.
func (c Copy) Sub(string, bool) (Dir, error) { return c, nil }

// Lock does nothing.
func (c Copy) Lock(time.Duration) (func(), error) { return func() {}, nil }

// Names returns the names of the segments.
func (c Copy) Names() (names []string, err error) {
	for _, n := range c.Segments {
		names = append(names, segmentName(n))
	}
	return names, nil
}

// Open reads a segment or a blob.
func (c Copy) Open(name string) (File, error) {
	n, hash := segmentNumber(name), (*Hash)(nil)
	if of := blobSegment(name); of > 0 {
		digits, _, _ := strings.Cut(name, ".")
		sum, _ := hex.DecodeString(digits) // blobSegment checked the digits
		n, hash = of, (*Hash)(sum)
	}
	if n == 0 {
		return nil, fs.ErrNotExist
	}
	text, err := c.Read(n, hash)
	if err != nil {
		return nil, err
	}
	return copyFile{text: bytes.NewReader(text)}, nil
}

// copyFile implements only the read methods of File; the embedded File is nil.
type copyFile struct {
	File
	text *bytes.Reader
}

func (f copyFile) ReadAt(p []byte, offset int64) (int, error) { return f.text.ReadAt(p, offset) }
func (f copyFile) Size() (int64, error)                       { return f.text.Size(), nil }
func (f copyFile) Close() error                               { return nil }

// Parse decodes a copied record without checking its predecessor.
func Parse(segment uint32, offset int64, text []byte) (Record, error) {
	r, end, err := recordAt(bytes.NewReader(text), Mark{Segment: segment}, int64(len(text)))
	if err == nil && end < int64(len(text)) {
		err = errBroken
	}
	r.Offset = offset
	return r, err
}
