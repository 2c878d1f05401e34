package journal

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// note is the number and the hash of a seal. That of the last one that is on the disk
// stands in the file head, beside the database: a journal that is shorter, or other at
// that number, has lost its end, or all.
type note struct {
	seq  int64
	hash []byte
}

// text has the same length for all notes, so that one replaces the other in place.
func (n note) text() string {
	if n.hash == nil {
		n.hash = make([]byte, sha256.Size)
	}
	return fmt.Sprintf("%020d %x\n", n.seq, n.hash)
}

func headPath(database string) string { return filepath.Join(filepath.Dir(database), "head") }

// readNote reads the file head.
func readNote(database string) (n note, err error) {
	text, err := os.ReadFile(headPath(database))
	if errors.Is(err, fs.ErrNotExist) {
		return n, fmt.Errorf("%w: the file head, which notes its end, is missing", ErrTampered)
	}
	if err != nil {
		return n, fmt.Errorf("cannot read where the journal ends: %w", err)
	}
	var hash string
	_, _ = fmt.Sscanf(string(text), "%d %s", &n.seq, &hash)
	n.hash, _ = hex.DecodeString(hash) // a faulty note differs from its own text below
	if n.seq < 0 || string(text) != n.text() {
		return n, fmt.Errorf("%w: the file head, which notes its end, holds no note", ErrTampered)
	}
	return n, nil
}

// holds returns an error unless the journal has the seal that was noted.
func (n note) holds(ctx context.Context, journal interface {
	QueryRowContext(context.Context, string, ...any) *sql.Row
},
) error {
	if n.seq == 0 {
		return nil
	}
	found, err := scanSeal(journal.QueryRowContext(ctx, "SELECT seq, hash FROM seals WHERE seq = ?", n.seq))
	if err == nil && !bytes.Equal(found.hash, n.hash) {
		err = fmt.Errorf("%w: its end is missing, or it is another journal: seal number %d is not the one that the file head notes", ErrTampered, n.seq)
	}
	return err
}

// openHead opens the file head for the notes of this process. It is left alone when
// it does not fit the journal, so that Verify goes on saying so.
func (w *writer) openHead(ctx context.Context) error {
	last, err := scanSeal(w.conn.QueryRowContext(ctx, querySeal))
	if err == nil && last.seq <= 1 { // the journal is new, or of a version without seals
		err = makeHead(w.path)
	}
	if err != nil {
		return err
	}
	noted, err := readNote(w.path)
	if err == nil {
		err = noted.holds(ctx, w.conn)
	}
	if errors.Is(err, ErrTampered) {
		w.tampered = fmt.Errorf("%w. Look at it with `toold audit verify`; to go on with it as it is, run `toold audit accept` and start toold again", err)
		return nil
	}
	if err == nil {
		w.disk.note, err = os.OpenFile(headPath(w.path), os.O_RDWR, 0)
	}
	return err
}

// makeHead makes the file head if it is missing. Another process may do so as well.
func makeHead(database string) error {
	f, err := os.CreateTemp(filepath.Dir(database), "head-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	if _, err = f.WriteString(note{}.text()); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Link(f.Name(), headPath(database))
	}
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// Accept notes the journal as it is: whoever says so knows why it had another end, for
// instance that a backup was restored.
func (j *Journal) Accept(ctx context.Context) error {
	last, err := scanSeal(j.read.QueryRowContext(ctx, querySeal))
	if err == nil {
		err = os.WriteFile(headPath(j.write.path), []byte(last.text()), 0o600)
	}
	if err != nil {
		return fmt.Errorf("cannot note the end of the journal: %w", err)
	}
	return nil
}
