package chain

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"time"
)

// Accept notes the present end of the log: the last record before the first one that does not follow its predecessor.
// Open then removes the rest of that segment. Accept renames segments that do not verify and returns their new names.
// It is meant for a person who has restored a backup.
func Accept(o Options) (last Mark, aside []string, err error) {
	unlock, err := o.Dir.Lock(o.Wait)
	if err != nil {
		return Mark{}, nil, err
	}
	defer unlock()
	a := accepting{dir: o.Dir, suffix: time.Now().UTC().Format(".aside-20060102T150405.000000000")}
	if last, err = a.last(); err != nil {
		return Mark{}, a.names, err
	}
	n := note{}
	if n.file, err = o.Notes.Create(o.Note); err != nil {
		return Mark{}, a.names, fmt.Errorf("cannot note the end of the log: %w", err)
	}
	return last, a.names, errors.Join(n.file.Truncate(0), n.settle(last), n.file.Close(), o.Notes.Sync())
}

type accepting struct {
	dir    Dir
	suffix string
	names  []string // set aside
}

// last sets aside segments that do not verify, and returns the last record of the others.
func (a *accepting) last() (Mark, error) {
	for {
		list, err := segments(a.dir)
		w := walk{dir: a.dir, seen: func(Record) error { return nil }}
		if err == nil {
			err = w.all(list)
		}
		damage, again := errors.AsType[*DamageError](err)
		if again {
			err = a.setAside(&w, damage.Mark.Segment)
		} else if n := len(list); err == nil && n > 0 && w.last.Segment < list[n-1] { // Open would ignore it
			again, err = true, a.rename(list[n-1])
		}
		w.close()
		if !again || err != nil {
			return w.last, err
		}
	}
}

// setAside removes the damaged part of a segment. It keeps later segments only if they follow the intact part.
func (a *accepting) setAside(w *walk, segment uint32) error {
	if f, err := w.open(segment); err == nil {
		_ = f.Close() // only opened
	} else if !errors.Is(err, fs.ErrNotExist) { // it may be stored elsewhere
		return fmt.Errorf("%w; put the file back, or remove what has its name, and run `toold audit accept` again", err)
	}
	partly := w.file != nil && w.last.Segment == segment
	if partly {
		if err := a.keep(segmentName(segment), w.size); err != nil {
			return err
		}
		if a.follows(w, segment+1) {
			return w.file.Truncate(w.end)
		}
		segment++ // Open removes the rest of it
	}
	return a.rename(segment)
}

// name returns the new name of a segment, and notes it. A copy may be replaced by the segment itself.
func (a *accepting) name(segment string) string {
	name := segment + a.suffix
	if !slices.Contains(a.names, name) {
		a.names = append(a.names, name)
	}
	return name
}

func (a *accepting) rename(segment uint32) error {
	list, err := segmentsLeft(a.dir)
	for _, n := range slices.Backward(list) {
		if name := segmentName(n); n >= segment && err == nil {
			err = a.dir.Rename(name, a.name(name))
		}
	}
	return errors.Join(err, a.dir.Sync())
}

func (a *accepting) follows(w *walk, segment uint32) bool {
	f, err := w.open(segment)
	if err != nil {
		return false
	}
	defer f.Close()
	before, err := follows(f, Mark{Segment: segment})
	return err == nil && before.Number == w.last.Number && before.Hash == w.last.Hash
}

func (a *accepting) keep(name string, size int64) error {
	from, err := a.dir.Open(name)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := a.dir.Create(a.name(name))
	if err != nil {
		return err
	}
	_, err = io.Copy(io.NewOffsetWriter(to, 0), io.NewSectionReader(from, 0, size))
	return errors.Join(err, to.Sync(), to.Close())
}

// Accepted records as a cut which files Accept has set aside.
func (l *Log) Accepted(aside []string) error {
	size, text := int64(0), "set aside by toold audit accept:"
	for _, name := range aside {
		f, err := l.opt.Dir.Open(name)
		if err != nil {
			return err
		}
		n, err := f.Size()
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
		size, text = size+n, text+" "+name
	}
	return l.Update(func(b *Batch) error {
		_, err := b.Append(KindCut, append(binary.BigEndian.AppendUint64(nil, uint64(size)), text...))
		return err
	})
}
