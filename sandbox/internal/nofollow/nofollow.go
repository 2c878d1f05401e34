// Package nofollow opens and examines files in directories that other processes change. It works with descriptors and
// follows no links.
package nofollow

import (
	"io"
	"io/fs"
	"strings"
	"time"
)

// ID identifies a file while it exists.
type ID struct{ Device, Inode uint64 }

// Info describes a file. Programs cannot set its times.
type Info struct {
	ID
	Mode    fs.FileMode // type bits only
	Bits    uint32      // permission bits
	Links   uint32
	UID     int
	Size    int64
	Changed time.Time // ctime
	Born    time.Time // birth time; zero if the file system has none
}

// ReadFile reads a regular file of at most most bytes, opened with OpenFile.
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

// Against joins a path to dir without cleaning it.
func Against(dir, path string) string {
	if strings.HasPrefix(path, "/") {
		return path
	}
	return dir + "/" + path
}
