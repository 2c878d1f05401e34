package journal

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"

	"github.com/toold/toold/internal/journal/columns"
)

// save writes chunks to files if enough records are new. After a failure it waits for more records.
func (x *index) save() error {
	x.saving.Lock()
	defer x.saving.Unlock()
	last := x.last().Number
	if x.dir == nil || x.failed > 0 && last-x.failed < x.records/16 {
		return nil
	}
	err := x.write()
	if x.failed = 0; err != nil {
		x.failed = last
	}
	return err
}

func (x *index) write() error {
	x.mu.RLock()
	var growing *tail
	if t := x.tail; t != nil {
		had := uint64(0)
		if x.saved > 0 {
			had = x.saved - t.first.Number + 1
		}
		if t.last.Number-t.first.Number+1-had >= max(x.records/16, had/2) {
			growing = t.freeze()
		}
	}
	chunks := x.chunks
	x.mu.RUnlock()
	for _, c := range slices.Backward(chunks) {
		c.mu.Lock()
		full := c.memory
		c.mu.Unlock()
		if full == nil {
			continue
		}
		file, err := x.writeChunk(c.name, full)
		if err != nil {
			return err
		}
		c.mu.Lock()
		c.memory, c.file = nil, file
		c.mu.Unlock()
	}
	if growing == nil {
		return nil
	}
	if _, err := x.writeChunk(growing.chunkName(), growing); err != nil {
		return err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.tail != nil && x.tail.first == growing.first {
		x.saved = growing.last.Number
	}
	return nil
}

// writeChunk writes a sealed chunk, unless another process has written one with more records.
func (x *index) writeChunk(name string, t *tail) (*columns.File, error) {
	text, err := t.encode()
	if err != nil {
		return nil, err
	}
	_, file, err := parseChunk(bytes.NewReader(text), int64(len(text)))
	if err != nil {
		return nil, err
	}
	if there, err := x.open(name); err == nil && there.first == t.first && there.last.Number > t.last.Number {
		return file, nil
	}
	// There is no sync, because an incomplete file is rebuilt.
	temporary := fmt.Sprintf("%s.%016x%s", name, rand.Uint64(), unfinished)
	f, err := x.dir.Create(temporary)
	if err == nil {
		_, err = f.WriteAt(text, 0)
		err = errors.Join(err, f.Close())
		if err == nil {
			err = x.dir.Rename(temporary, name)
		}
		if err != nil {
			_ = x.dir.Remove(temporary) // free the space
		}
	}
	if err != nil {
		return nil, fmt.Errorf("cannot write the index of the journal: %w", err)
	}
	return file, nil
}

// removeIndex removes the index of a journal. Processes that use it continue without.
func removeIndex(dir string) error {
	if err := os.RemoveAll(filepath.Join(dir, indexName)); err != nil {
		return fmt.Errorf("cannot remove the index of the journal: %w", err)
	}
	return nil
}
