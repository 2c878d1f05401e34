package chain

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"strconv"
)

// note is the file that names the last synced record. It has two slots, so that a power cut damages at most one: firm
// is written only after latest is synced.
type note struct{ file File }

const (
	latest = 0        // offset
	firm   = slotSize // offset, in another sector

	slotSize = 512 // padded with zeros
)

// openNote opens the note. For an empty log it creates one that names no record.
func openNote(o Options, empty bool) (n note, err error) {
	n.file, err = o.Notes.Open(o.Note)
	switch {
	case err == nil && !empty:
		return n, nil
	case (errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNoFile)) && !empty:
		return n, &DamageError{Why: "the note of where the log ends is missing, or no file"}
	case errors.Is(err, fs.ErrNotExist):
		n.file, err = o.Notes.Create(o.Note)
	}
	if err != nil {
		return n, fmt.Errorf("cannot open the note of where the log ends: %w", err)
	}
	m, err := n.read(false)
	var damage *DamageError
	if m.Number > 0 || err != nil && !errors.As(err, &damage) {
		return n, err
	}
	return n, errors.Join(n.write(firm, Mark{}), n.file.Sync(), o.Notes.Sync())
}

func (n note) write(at int64, m Mark) error {
	if _, err := n.file.WriteAt(noteText(m)[:slotSize], at); err != nil { // the rest of the slot is zeros
		return fmt.Errorf("cannot note the end of the log: %w", err)
	}
	return nil
}

// settle writes m into both slots and syncs each. m must be durable already.
func (n note) settle(m Mark) error {
	for _, at := range []int64{latest, firm} {
		if err := n.write(at, m); err != nil {
			return err
		}
		if err := n.file.Sync(); err != nil {
			return fmt.Errorf("cannot note the end of the log: %w", err)
		}
	}
	return nil
}

// read returns the mark of the later intact slot. If strict is set, a damaged slot is an error.
func (n note) read(strict bool) (Mark, error) {
	a, err := n.slot(latest)
	if err != nil {
		return Mark{}, err
	}
	b, err := n.slot(firm)
	if err != nil {
		return Mark{}, err
	}
	size, err := n.file.Size()
	if err != nil {
		return Mark{}, fmt.Errorf("cannot read where the log ends: %w", err)
	}
	lost := !a.whole && !b.whole
	cut := a.written && !a.whole
	torn := !b.whole || cut || size > firm+slotSize
	if lost || strict && torn {
		return Mark{}, &DamageError{Why: "the note of where the log ends was changed"}
	}
	if a.whole && (!b.whole || a.mark.Number >= b.mark.Number) {
		return a.mark, nil
	}
	return b.mark, nil
}

type slot struct {
	mark           Mark
	written, whole bool
}

func (n note) slot(at int64) (slot, error) {
	p := make([]byte, slotSize)
	if _, err := n.file.ReadAt(p, at); err != nil && !errors.Is(err, io.EOF) {
		return slot{}, fmt.Errorf("cannot read where the log ends: %w", err)
	}
	text := bytes.TrimRight(p, "\x00")
	m, whole := parseNote(string(text))
	return slot{m, len(text) > 0, whole}, nil
}

// noteText returns a text of constant length, so that a note can be overwritten in place.
func noteText(m Mark) []byte {
	text := append(padded(make([]byte, 0, slotSize), m.Number, 20), ' ')
	text = append(padded(text, uint64(m.Segment), 8), ' ')
	text = append(padded(text, uint64(m.Offset), 20), ' ')
	text = hex.AppendEncode(text, m.Hash[:])
	sum := binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE(text))
	return append(hex.AppendEncode(append(text, ' '), sum), '\n')
}

func padded(p []byte, n uint64, digits int) []byte {
	s := strconv.FormatUint(n, 10)
	return append(append(p, "00000000000000000000"[:max(0, digits-len(s))]...), s...)
}

func parseNote(text string) (m Mark, ok bool) {
	var hash string
	_, _ = fmt.Sscanf(text, "%d %d %d %s", &m.Number, &m.Segment, &m.Offset, &hash)
	if sum, err := hex.DecodeString(hash); err == nil {
		copy(m.Hash[:], sum)
	}
	return m, text == string(noteText(m))
}
