package masks

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	"github.com/toold/toold/policy"
	"github.com/toold/toold/sandbox/internal/nofollow"
)

// maxHashed limits the size in bytes of files that are compared with blobs.
const maxHashed = 4 << 20

// HeldByGit reports whether the repository that contains a file has its bytes as a blob. It returns false for files
// that are larger than 4 MiB, unreadable or masked, and if more than *budget bytes would be unpacked. It reduces
// *budget by the unpacked bytes.
func (t *Tracker) HeldByGit(path string, budget *int64) bool {
	if t != nil && t.secret(path) {
		return false
	}
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		if git := gitDirectory(dir); git != "" {
			return openRepository(dir, git).holds(path, budget)
		}
		if dir == filepath.Dir(dir) {
			return false
		}
	}
}

// secret reports whether rules hide, or may hide, a file from some call.
func (t *Tracker) secret(path string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, reads := t.anyone.Blocks(policy.Read, path, true)
	return reads || t.root(path) == ""
}

func readContent(path string, seen state) (content []byte, ok bool) {
	content, err := nofollow.ReadFile(path, maxHashed)
	return content, err == nil && stateOf(path) == seen
}

func (r *repository) holds(path string, budget *int64) bool {
	content, ok := readContent(path, stateOf(path))
	if !ok {
		return false
	}
	name := r.blob(content)
	return slices.ContainsFunc(r.objects, func(dir string) bool {
		o := store{dir: dir, budget: budget}
		found, ok := o.blob(name)
		return ok && bytes.Equal(found, content)
	})
}

// blob returns the name that git gives to content (gitformat-pack(5)).
func (r *repository) blob(content []byte) []byte {
	object := append(fmt.Appendf(nil, "blob %d\x00", len(content)), content...)
	if r.sha256 {
		sum := sha256.Sum256(object)
		return sum[:]
	}
	sum := sha1.Sum(object)
	return sum[:]
}

type store struct {
	dir    string
	budget *int64 // bytes that may be unpacked
}

func (s store) blob(name []byte) (content []byte, ok bool) {
	text := hex.EncodeToString(name)
	if f, err := nofollow.OpenFile(filepath.Join(s.dir, text[:2], text[2:])); err == nil {
		content, ok = s.inflate(f, maxHashed+64)
		f.Close()
		head, rest, _ := bytes.Cut(content, []byte{0})
		if ok && string(head) == fmt.Sprintf("blob %d", len(rest)) {
			return rest, true
		}
	}
	indexes, _ := filepath.Glob(filepath.Join(escaped(s.dir), "pack", "*.idx"))
	for _, path := range indexes {
		p, err := openPack(path, len(name))
		if err != nil {
			continue
		}
		if at := p.find(name); at > 0 {
			content, ok = s.unpack(p, at, maxDeltas)
		}
		p.close()
		if ok {
			return content, true
		}
	}
	return nil, false
}

// inflate unpacks at most most bytes. ok is false if there are more.
func (s store) inflate(r io.Reader, most int64) (text []byte, ok bool) {
	z, err := zlib.NewReader(r)
	if err != nil {
		return nil, false
	}
	text, err = io.ReadAll(io.LimitReader(z, min(most, *s.budget)+1))
	*s.budget -= int64(len(text))
	return text, err == nil && int64(len(text)) <= most && *s.budget >= 0
}

// Kinds of packed objects (gitformat-pack(5)).
const (
	packedBlob  = 3
	offsetDelta = 6
	namedDelta  = 7
)

const maxDeltas = 256

func (s store) unpack(p *pack, at int64, deltas int) (content []byte, ok bool) {
	r := bufio.NewReader(io.NewSectionReader(p.data, at, p.size-at))
	kind, size, base, ok := p.kind(r, at)
	isValid := ok && (kind == packedBlob || base > 0)
	if !isValid || deltas == 0 || size > maxHashed {
		return nil, false
	}
	text, ok := s.inflate(r, size)
	if !ok || int64(len(text)) != size || kind == packedBlob {
		return text, ok && int64(len(text)) == size
	}
	from, ok := s.unpack(p, base, deltas-1)
	if !ok {
		return nil, false
	}
	content, ok = patched(from, text)
	*s.budget -= int64(len(content))
	return content, ok && *s.budget >= 0
}

func patched(from, delta []byte) (content []byte, ok bool) {
	size, n := binary.Uvarint(delta)
	if n <= 0 || size != uint64(len(from)) {
		return nil, false
	}
	delta = delta[n:]
	if size, n = binary.Uvarint(delta); n <= 0 || size > maxHashed {
		return nil, false
	}
	for delta = delta[n:]; len(delta) > 0; {
		op := delta[0]
		delta = delta[1:]
		piece := delta[:min(int(op), len(delta))]
		if op&0x80 == 0 {
			delta = delta[len(piece):]
		} else if piece, delta, ok = copied(op, from, delta); !ok {
			return nil, false
		}
		if len(piece) == 0 || len(content)+len(piece) > int(size) {
			return nil, false
		}
		content = append(content, piece...)
	}
	return content, len(content) == int(size)
}

func copied(op byte, from, delta []byte) (piece, rest []byte, ok bool) {
	var at, size int
	for bit := range 7 {
		if op&(1<<bit) == 0 {
			continue
		}
		if len(delta) == 0 {
			return nil, nil, false
		}
		if bit < 4 {
			at |= int(delta[0]) << (8 * bit)
		} else {
			size |= int(delta[0]) << (8 * (bit - 4))
		}
		delta = delta[1:]
	}
	if size == 0 {
		size = 1 << 16
	}
	if at < 0 || at > len(from)-size {
		return nil, nil, false
	}
	return from[at : at+size], delta, true
}

type pack struct {
	index, data *os.File
	size        int64  // of data
	name        int    // size of an object's name in bytes
	head        []byte // of index
}

const (
	idxHeader = 8
	idxNames  = idxHeader + 256*4 // after the fan-out table
)

func openPack(path string, name int) (*pack, error) {
	index, err := nofollow.OpenFile(path)
	if err != nil {
		return nil, err
	}
	p := &pack{index: index, name: name, head: make([]byte, idxNames)}
	if p.data, err = nofollow.OpenFile(strings.TrimSuffix(path, ".idx") + ".pack"); err != nil {
		index.Close()
		return nil, err
	}
	info, err := p.data.Stat()
	if err == nil {
		p.size = info.Size()
		_, err = index.ReadAt(p.head, 0)
	}
	if err == nil && !bytes.HasPrefix(p.head, []byte("\xfftOc\x00\x00\x00\x02")) {
		err = fmt.Errorf("%s is not of version 2", path)
	}
	if err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

func (p *pack) close() {
	p.index.Close()
	p.data.Close()
}

// count returns how many objects have a name whose first byte is at most first.
func (p *pack) count(first int) int64 {
	if first < 0 {
		return 0
	}
	return int64(binary.BigEndian.Uint32(p.head[idxHeader+4*first:]))
}

// find returns the offset of an object, or 0. It does not trust the values in the pack index, which a call may have
// written.
func (p *pack) find(name []byte) int64 {
	low, high := p.count(int(name[0])-1), p.count(int(name[0]))
	i := low + int64(sort.Search(int(high-low), func(i int) bool {
		return bytes.Compare(p.entry(p.name, idxNames+(low+int64(i))*int64(p.name)), name) >= 0
	}))
	if i >= high || !bytes.Equal(p.entry(p.name, idxNames+i*int64(p.name)), name) {
		return 0
	}
	const sum = 4
	all := p.count(255)
	short := idxNames + all*int64(p.name+sum)
	at := binary.BigEndian.Uint32(p.entry(4, short+4*i))
	if at&(1<<31) == 0 {
		return int64(at)
	}
	return int64(binary.BigEndian.Uint64(p.entry(8, short+4*all+8*int64(at&^(1<<31)))))
}

// entry returns n bytes of the pack index; zeros if it is too short.
func (p *pack) entry(n int, at int64) []byte {
	b := make([]byte, n)
	if _, err := p.index.ReadAt(b, at); err != nil {
		clear(b)
	}
	return b
}

// kind reads the header of an object. base is the offset of the base of a delta.
func (p *pack) kind(r *bufio.Reader, at int64) (kind int, size, base int64, ok bool) {
	first, err := r.ReadByte()
	if err != nil {
		return 0, 0, 0, false
	}
	kind, size = int(first>>4&7), int64(first&15)
	if first&0x80 != 0 {
		more, err := binary.ReadUvarint(r)
		if err != nil || more > maxHashed {
			return 0, 0, 0, false
		}
		size |= int64(more) << 4
	}
	switch kind {
	case packedBlob:
		return kind, size, 0, true
	case offsetDelta:
		text, _ := r.Peek(8)
		back, n := offset(text)
		_, err = r.Discard(n)
		inPack := 0 < back && back < at
		return kind, size, at - back, err == nil && n > 0 && inPack
	case namedDelta:
		name := make([]byte, p.name)
		_, err = io.ReadFull(r, name)
		return kind, size, p.find(name), err == nil
	}
	return 0, 0, 0, false
}

func escaped(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}
