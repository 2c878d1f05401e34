package journal

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/toold/toold/internal/journal/chain"
	"github.com/toold/toold/internal/journal/seal"
)

// Made returns ErrNotFound if dir has no journal, and ErrTampered if only the note of one exists.
func Made(dir string) error {
	_, err := os.Stat(logDir(dir))
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	note := filepath.Join(notesDir(dir), noteName)
	if _, err := os.Stat(note); err == nil {
		return tampered("it is missing in %s, and %s notes where it ends", dir, note)
	}
	return ErrNotFound
}

// Verify checks that the records, the index and the signatures of the journal in dir are unchanged and match checks.
// output returns the checksum of a call's kept output, "" if that was removed; if output is nil, output is not
// checked. The error is ErrTampered and names the first bad record. Without checks Verify cannot notice that all files
// were replaced.
func Verify(ctx context.Context, dir string, checks seal.Checks, output func(Key) (string, error)) (Report, error) {
	f, err := openFiles(dir)
	defer f.close()
	if err != nil {
		return Report{}, fmt.Errorf("cannot verify the journal: %w", err)
	}
	for {
		r, err := verify(ctx, &f, checks, output)
		switch {
		case errors.Is(err, chain.ErrNoMark):
			continue // a part was removed meanwhile
		case err != nil && !errors.Is(err, ErrTampered):
			return Report{}, fmt.Errorf("cannot verify the journal: %w", err)
		}
		return r, err
	}
}

// Report is what Verify found.
type Report struct {
	seal.Link // last record
	seal.Found
	Cuts []chain.Cut

	First, Latest time.Time // of the records
}

func verify(ctx context.Context, f *files, checks seal.Checks, output func(Key) (string, error)) (Report, error) {
	id, _, err := chain.Identify(f.log)
	if err != nil {
		return Report{}, err
	}
	v := verification{id: id, output: output, compared: checks.Compare(hex.EncodeToString(id[:])), chunks: map[string]*chunk{}}
	defer v.close()
	mark, rest, err := v.verify(ctx, f)
	damage, isDamage := errors.AsType[*chain.DamageError](err)
	switch {
	case err != nil && !isDamage:
		return Report{}, err
	case isDamage: // checks may refer to records after the damage
		err = fmt.Errorf("%w: %w%s", ErrTampered, err, v.touched(f, damage.Mark))
	case rest > 0:
		err = tampered("%d bytes follow record number %d and are none: toold was killed while it wrote them, and removes them when it starts, or they were added", rest, mark.Number)
	}
	if !isDamage {
		err = errors.Join(err, v.end())
	}
	if err = errors.Join(err, errors.Join(v.bad...), v.lostOnes(f)); err != nil {
		return Report{}, err
	}
	return Report{seal.Link{Number: mark.Number, Hash: mark.Hash}, v.compared.Found, v.cuts, v.first, v.latest}, nil
}

func (v *verification) end() error {
	err := v.compared.End()
	if _, removed := errors.AsType[*seal.RemovedError](err); err == nil || removed {
		return err
	}
	return fmt.Errorf("%w: %w", ErrTampered, err)
}

func tampered(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrTampered, fmt.Sprintf(format, args...))
}

// verification is one run of Verify. It rebuilds each chunk of the index.
type verification struct {
	id       chain.ID
	log      chain.Dir
	output   func(Key) (string, error) // may be nil
	compared *seal.Comparison
	lost     []lostText
	bad      []error // further errors, of the index and of checkpoints
	begins   int64   // first remaining segment, according to the records
	cuts     []chain.Cut

	first, latest time.Time // of the records

	index  *index            // may be nil
	chunks map[string]*chunk // not yet compared
	own    *tail
}

func (v *verification) verify(ctx context.Context, f *files) (last chain.Mark, rest int64, err error) {
	v.log = f.log
	v.open(f)
	o := f.options(func(rec chain.Record) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return v.add(rec)
	})
	o.Own = v.addOwn
	last, rest, err = chain.Verify(o)
	if err == nil {
		v.rest(last)
	}
	return last, rest, err
}

func (v *verification) open(f *files) {
	if f.path == "" {
		return
	}
	dir, err := f.log.Sub(indexName, false)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	v.index = &index{log: f.log, dir: dir, hash: hasher{v.id, f.hashMask}, records: f.chunk}
	var names []string
	if err == nil {
		names, err = dir.Names()
	}
	if err != nil {
		v.differs(indexName, err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, unfinished) {
			continue
		}
		if v.openChunk(name); v.index == nil {
			break
		}
	}
}

func (v *verification) openChunk(name string) {
	c, err := v.index.open(name)
	if errors.Is(err, errForeign) && len(v.chunks) == 0 && c.id == v.index.hash.id { // another size of chunks, perhaps of a later version
		v.index.records, v.index.hash.mask = uint64(c.records), uint32(c.mask)
		c, err = v.index.open(name)
	}
	switch {
	case errors.Is(err, errForeign) && c.id == chain.ID{}: // of another version; ignored
	case err == nil:
		v.chunks[name] = c
	case !errors.Is(err, fs.ErrNotExist): // otherwise it was removed meanwhile
		v.differs(name, err)
	}
}

// differs records that the index does not match the log, and ends the comparison with the index.
func (v *verification) differs(name string, why error) {
	if v.close(); v.index == nil {
		return
	}
	v.index, v.chunks = nil, nil
	v.bad = append(v.bad, tampered("the index differs from the log: %s: %v. Nothing is lost: remove the directory %s beside the log, and it is made anew", name, why, indexName))
}

func (v *verification) passed(rec chain.Record) {
	v.compared.Record(seal.Link{Number: rec.Number, Hash: rec.Hash})
	if v.latest = rec.Time; v.first.IsZero() {
		v.first = rec.Time
	}
}

func (v *verification) addOwn(rec chain.Record) {
	v.passed(rec)
	if c := rec.Cut(); c.Bytes > 0 {
		v.cuts = append(v.cuts, c)
	}
}

func (v *verification) add(rec chain.Record) error {
	v.passed(rec)
	if rec.Kind == kindCheckpoint {
		v.checkpoint(rec)
	}
	var lost error
	e, err := decodeRecord(rec, texts{dir: v.log, lost: func(err error) { lost = err }})
	if err != nil {
		return err
	}
	if lost != nil {
		v.lost = append(v.lost, lostText{keyOf(e), rec.Mark, lost.Error()})
	}
	switch e := e.(type) {
	case *removedEvent:
		v.begins = e.stays
	case *returnEvent:
		if err := v.printed(e, rec.Mark); err != nil {
			return err
		}
	}
	return v.compare(taken{e, rec.Mark, rec.Before, rec.Time})
}

func (v *verification) checkpoint(rec chain.Record) {
	var e checkpointEvent
	err := decode(rec.Body, &e, nil)
	if err != nil {
		err = fmt.Errorf("the checkpoint in record number %d cannot be read: %w", rec.Number, err)
	} else {
		err = v.compared.Checkpoint(seal.Checkpoint{Log: e.log, Number: rec.Number - 1, Hash: rec.Before, Time: rec.Time, Key: e.key, Signature: e.signature})
	}
	if err != nil {
		v.bad = append(v.bad, fmt.Errorf("%w: %w", ErrTampered, err))
	}
}

func (v *verification) printed(e *returnEvent, at chain.Mark) error {
	if v.output == nil || e.outcome.Output == "" {
		return nil
	}
	sum, err := v.output(Key(e.key))
	if err != nil || sum == "" || sum == e.outcome.Output {
		return err
	}
	v.lost = append(v.lost, lostText{Key(e.key), at, fmt.Sprintf("the output that is kept of its call was changed or added, or the machine crashed before all of it was on the disk; remove spool/%d to go on without it", e.key)})
	return nil
}

// compare indexes a record and, at the end of a chunk, compares the chunk with its file.
func (v *verification) compare(r taken) error {
	if v.index == nil {
		return nil
	}
	if v.own == nil || !v.own.has(r.Mark) {
		v.own = newTail(v.index.hash, v.index.records)
	}
	v.own.add(r)
	name := v.own.chunkName()
	c := v.chunks[name]
	if c == nil || c.last.Number != r.Number {
		return nil
	}
	delete(v.chunks, name)
	want, err := v.own.freeze().encode()
	if err != nil {
		return err
	}
	is, err := readAll(v.index.dir, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case string(is) == string(want):
		return nil
	}
	if now, err := v.index.open(name); err == nil && now.last.Number > c.last.Number {
		return nil // it grew meanwhile
	}
	v.differs(name, errors.New("it says something else than these records"))
	return nil
}

func readAll(dir chain.Dir, name string) ([]byte, error) {
	f, err := dir.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	size, err := f.Size()
	p := make([]byte, size)
	if err == nil && size > 0 {
		_, err = f.ReadAt(p, 0)
	}
	return p, err
}

func (v *verification) rest(last chain.Mark) {
	for name, c := range v.chunks {
		switch {
		case c.last.Number <= v.compared.Gone, int64(c.first.Segment) < v.begins, !v.now(name, c):
			continue
		case c.last.Number > last.Number:
			v.differs(name, fmt.Errorf("it was made from %d records, and there are %d", c.last.Number, last.Number))
		default:
			v.differs(name, errors.New("its last record is none of the log"))
		}
		return
	}
}

func (v *verification) now(name string, c *chunk) bool {
	is, err := v.index.open(name)
	return err == nil && is.file.Sum == c.file.Sum
}

func (v *verification) close() {
	if v.index != nil {
		_ = v.index.close()
	}
}
