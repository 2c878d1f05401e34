package masks

import (
	"bytes"
	"encoding/binary"
	"hash/maphash"
	"strings"

	"github.com/toold/toold/sandbox/internal/nofollow"
)

// An index is the state of a repository's index file. An entry counts only if no call ran when it appeared, since
// calls can write the index and its blobs.
type index struct {
	path    string
	seed    maphash.Seed
	sha256  bool  // blob names are SHA-256
	state   state // of the file when it was last read
	entries blobs // nil = unreadable
	vouched blobs // latest entry of each path that no call can have written; see vouches
	version int   // changes with what vouches may return
	unsure  bool  // entries may have changed while calls ran
}

// blobs maps hashes of paths to hashes of blob names, since an index may have a million entries.
type blobs map[uint64]uint64

// Limits of an index; a larger one counts as unreadable.
const (
	maxIndex   = 128 << 20
	maxEntries = 1 << 20
)

// index returns the index of a repository, or nil. The entries of one that appears after a call has begun may be from
// calls.
func (t *Tracker) index(r *repository) *index {
	if r == nil {
		return nil
	}
	i := t.indexes[r.index]
	if i == nil {
		i = &index{path: r.index, seed: maphash.MakeSeed(), sha256: r.sha256, vouched: blobs{}, unsure: t.begun}
		t.indexes[r.index] = i
	}
	return i
}

// readIndexes reads changed indexes unless a call runs. byPersons means that no call has run since the last read, so
// that persons made the changes. The caller holds mu.
func (t *Tracker) readIndexes(byPersons bool) {
	if len(t.active) > 0 {
		return
	}
	for _, i := range t.indexes {
		i.read(byPersons)
	}
}

func (i *index) read(byPersons bool) {
	now := stateOf(i.path)
	if now == i.state && (i.entries != nil || i.unsure) {
		return
	}
	was := i.entries
	i.entries = i.list()
	if stateOf(i.path) != now {
		i.entries = nil
	}
	i.state = now
	if byPersons && !i.unsure {
		for path, blob := range i.entries {
			if was[path] != blob {
				i.vouched[path] = blob
				i.version++
			}
		}
	}
	for path := range i.vouched {
		_, before := was[path]
		_, after := i.entries[path]
		if before != after {
			i.version++
		}
	}
	i.unsure = i.entries == nil && (i.unsure || now != state{})
}

// vouches reports whether a person added the bytes of a file, in the given state, to git under its path, and the path
// is still in the index.
func (i *index) vouches(r *repository, path string, seen state) bool {
	rel, below := strings.CutPrefix(path, strings.TrimSuffix(r.top, "/")+"/")
	key := maphash.String(i.seed, rel)
	blob, tracked := i.vouched[key]
	_, has := i.entries[key] // empty if the index is unreadable, which calls can cause
	if !below || !tracked || !has {
		return false
	}
	content, ok := readContent(path, seen)
	return ok && maphash.Bytes(i.seed, r.blob(content)) == blob
}

// list returns the files in the index (gitformat-index(5)). It returns nil if the index is unreadable, unsorted or
// split.
func (i *index) list() blobs {
	text, err := nofollow.ReadFile(i.path, maxIndex)
	if err != nil || len(text) < 12 || string(text[:4]) != "DIRC" {
		return nil
	}
	version, count := binary.BigEndian.Uint32(text[4:]), binary.BigEndian.Uint32(text[8:])
	if version < 2 || version > 4 || count > maxEntries {
		return nil
	}
	r := entryReader{text: text[12:], packed: version == 4, name: 20}
	if i.sha256 {
		r.name = 32
	}
	list := make(blobs, count)
	for range count {
		if !r.next() {
			return nil
		}
		if r.file && r.stage == 0 {
			list[maphash.Bytes(i.seed, r.path)] = maphash.Bytes(i.seed, r.blob)
		}
	}
	return list
}

// entryReader reads the entries of an index in their order.
type entryReader struct {
	text   []byte
	packed bool // paths omit the prefix that they share with the previous one
	name   int  // size of a blob's name in bytes

	path, blob []byte
	file       bool
	stage      int // merge stage; 0 = none
}

// next reads an entry. It returns false if the entry is invalid or out of order.
func (r *entryReader) next() bool {
	const stat, mode = 40, 24
	head := stat + r.name + 2
	if len(r.text) < head+2 {
		return false
	}
	r.file = binary.BigEndian.Uint32(r.text[mode:])>>12 == 0o10
	r.blob = r.text[stat : stat+r.name]
	flags := binary.BigEndian.Uint16(r.text[head-2:])
	if flags&0x4000 != 0 {
		head += 2
	}
	rest, was, stage := r.text[head:], r.path, r.stage
	r.stage = int(flags >> 12 & 3)
	kept := 0
	if r.packed {
		cut, n := offset(rest)
		if n == 0 || cut > int64(len(was)) {
			return false
		}
		kept, rest = len(was)-int(cut), rest[n:]
	}
	end := bytes.IndexByte(rest, 0)
	if end < 0 {
		return false
	}
	r.path = append(was[:kept:kept], rest[:end]...)
	used := len(r.text) - len(rest) + end + 1
	if !r.packed {
		used = (head + end + 8) &^ 7
	}
	if used > len(r.text) {
		return false
	}
	r.text = r.text[used:]
	if bytes.Equal(was, r.path) {
		return 0 < stage && stage < r.stage
	}
	return bytes.Compare(was, r.path) < 0
}

// offset reads a number in git's offset encoding (gitformat-pack(5)). n is its length, or 0 if it is invalid.
func offset(text []byte) (value int64, n int) {
	for n < len(text) && n < 8 {
		value |= int64(text[n] & 0x7f)
		if n++; text[n-1]&0x80 == 0 {
			return value, n
		}
		value = (value + 1) << 7
	}
	return 0, 0
}
