// Package nofollow opens and examines files in directories that other processes change:
// by descriptors, following no link.
package nofollow

import (
	"io"
	"io/fs"
	"time"
)

// ID identifies a file while it exists.
type ID struct{ Device, Inode uint64 }

// Info is what is known of a file. No program can set the times.
type Info struct {
	ID
	Mode    fs.FileMode // its type
	Bits    uint32      // its permissions
	Links   uint32      // how many names it has
	UID     int
	Size    int64
	Changed time.Time // in any way
	Born    time.Time // zero where the file system does not know
}

// ReadFile reads a regular file of at most this many bytes, as OpenFile opens it.
func ReadFile(path string, most int64) ([]byte, error) {
	f, err := OpenFile(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(text)) > most {
		err = fs.ErrInvalid
	}
	return text, err
}
