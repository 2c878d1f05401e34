package anchor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/toold/toold/internal/journal/seal"
)

// File is the path of a file with one checkpoint per line. Lines are only added.
type File string

// Add appends a line.
func (path File) Add(_ context.Context, c seal.Checkpoint) error {
	text, err := line(c)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(string(path), os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err == nil {
		err = errors.Join(add(f, text), f.Close())
	}
	if err != nil {
		return fmt.Errorf("cannot anchor in a file: %w", err)
	}
	return nil
}

// add starts a new line if the last write was cut off.
func add(f *os.File, text []byte) error {
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

// All reads the lines. An incomplete line is an error.
func (path File) All(context.Context) ([]seal.Checkpoint, error) {
	f, err := os.Open(string(path))
	if err != nil {
		return nil, fmt.Errorf("cannot read the anchors: %w", err)
	}
	defer f.Close()
	list, err := lines(f, func(text []byte) bool { return len(text) == 0 })
	if err != nil {
		return nil, fmt.Errorf("cannot read the anchors in %s: %w", path, err)
	}
	return list, nil
}
