// Package anchor stores signed checkpoints of journals in a file, a git repository or a PostgreSQL database, so that
// journal.Verify can compare them. An anchor is useful only if those who can change the journal cannot change the
// store.
package anchor

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/toold/toold/internal/journal/seal"
)

// Store stores checkpoints, also of several journals.
type Store interface {
	// Add returns when the checkpoint is stored.
	Add(ctx context.Context, c seal.Checkpoint) error
	// All returns the stored checkpoints.
	All(ctx context.Context) ([]seal.Checkpoint, error)
}

// Parse returns the store that name selects: file:PATH, git:REPOSITORY or postgres://HOST/DATABASE.
func Parse(name string) (Store, error) {
	kind, at, _ := strings.Cut(name, ":")
	switch {
	case at == "":
	case kind == "file":
		return File(at), nil
	case kind == "git":
		return Git(at), nil
	case kind == "postgres", kind == "postgresql":
		return Postgres(name), nil
	}
	return nil, fmt.Errorf("%q names no place for anchors: write file:PATH, git:REPOSITORY or postgres://HOST/DATABASE", name)
}

// backend is a Store whose errors do not name it.
type backend interface {
	add(ctx context.Context, c seal.Checkpoint, line []byte) error
	all(ctx context.Context) ([]seal.Checkpoint, error)
}

type store struct {
	backend
	name string
}

func (s store) Add(ctx context.Context, c seal.Checkpoint) error {
	text, err := json.Marshal(c)
	if err == nil {
		err = s.add(ctx, c, append(text, '\n'))
	}
	if err != nil {
		return fmt.Errorf("cannot anchor in %s: %w", s.name, err)
	}
	return nil
}

func (s store) All(ctx context.Context) ([]seal.Checkpoint, error) {
	list, err := s.all(ctx)
	if err != nil {
		return nil, fmt.Errorf("cannot read the anchors in %s: %w", s.name, err)
	}
	return list, nil
}

// parseLines decodes one checkpoint per line. It ignores lines for which skip returns true.
func parseLines(in io.Reader, skip func([]byte) bool) (list []seal.Checkpoint, err error) {
	s := bufio.NewScanner(in)
	for n := 1; s.Scan(); n++ {
		text := bytes.TrimSpace(s.Bytes())
		if skip(text) {
			continue
		}
		var c seal.Checkpoint
		if err := json.Unmarshal(text, &c); err != nil {
			return nil, fmt.Errorf("line %d is no anchor: %w", n, err)
		}
		list = append(list, c)
	}
	return list, s.Err()
}
