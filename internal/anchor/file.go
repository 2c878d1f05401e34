package anchor

import (
	"context"
	"errors"
	"io"
	"os"

	"github.com/toold/toold/internal/journal/seal"
)

// File returns a Store that appends each checkpoint as a line to the file at path. Reading returns an error if a line
// is incomplete.
func File(path string) Store { return store{file(path), path} }

type file string

func (path file) add(_ context.Context, _ seal.Checkpoint, line []byte) error {
	f, err := os.OpenFile(string(path), os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(appendLine(f, line), f.Close())
}

// appendLine starts a new line if the last write was cut off.
func appendLine(f *os.File, text []byte) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	last := []byte{'\n'}
	if size := info.Size(); size > 0 {
		if _, err := f.ReadAt(last, size-1); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
	}
	if last[0] != '\n' {
		text = append([]byte{'\n'}, text...)
	}
	if _, err := f.Write(text); err != nil {
		return err
	}
	return f.Sync()
}

func (path file) all(context.Context) ([]seal.Checkpoint, error) {
	f, err := os.Open(string(path))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return parseLines(f, func(text []byte) bool { return len(text) == 0 })
}
