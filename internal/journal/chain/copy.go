package chain

import (
	"bytes"
	"encoding/hex"
	"io/fs"
	"strings"
	"time"
)

// Copy is a copy of a log, made of Record.Text, and of the texts beside it. Verify, Salvage and
// ReadBlob read it as they read a log: nothing that does calls the methods that it lacks.
type Copy struct {
	Dir      // nil
	Segments []uint32
	// Read returns the records of a segment, each behind the other, or a text that they mean.
	// The error is fs.ErrNotExist without it.
	Read func(segment uint32, text *Hash) ([]byte, error)
}

// Sub implements Dir, as the other methods do.
func (c Copy) Sub(string, bool) (Dir, error) { return c, nil }

// Lock locks nothing.
func (c Copy) Lock(time.Duration) (func(), error) { return func() {}, nil }

// Names returns those of the segments.
func (c Copy) Names() (names []string, err error) {
	for _, n := range c.Segments {
		names = append(names, segmentName(n))
	}
	return names, nil
}

// Open reads a segment or a text.
func (c Copy) Open(name string) (File, error) {
	n, hash := segmentNumber(name), (*Hash)(nil)
	if of := blobSegment(name); of > 0 {
		digits, _, _ := strings.Cut(name, ".")
		sum, _ := hex.DecodeString(digits) // it can be: blobSegment has tried
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

// copyFile is a File whose File is nil.
type copyFile struct {
	File
	text *bytes.Reader
}

func (f copyFile) ReadAt(p []byte, offset int64) (int, error) { return f.text.ReadAt(p, offset) }
func (f copyFile) Size() (int64, error)                       { return f.text.Size(), nil }
func (f copyFile) Close() error                               { return nil }

// Parse reads a record that was copied, whatever the one before it is.
func Parse(segment uint32, offset int64, text []byte) (Record, error) {
	r, end, err := recordAt(bytes.NewReader(text), Mark{Segment: segment}, int64(len(text)))
	if err == nil && end < int64(len(text)) {
		err = errBroken
	}
	r.Offset = offset
	return r, err
}
