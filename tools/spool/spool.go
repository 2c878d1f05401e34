package spool

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/toold/toold/internal/redact"
	"github.com/toold/toold/tools"
)

// A spool is the directory of one call. The files "stdout" and "stderr" have the streams. "order" has the order of
// their runs as uvarints: twice the length, plus one for stderr. After the last run the rest of stdout comes first:
// order is written late, and at the end only if both streams exist.

const orderFile = 2 // index in fileNames

// fileNames are the names of the files, first the streams.
var fileNames = [3]string{tools.Stdout.String(), tools.Stderr.String(), "order"}

// spoolWriter stops at the limit and at the first error, so the files have the beginning of the output.
type spoolWriter struct {
	dir     string
	left    int64 // remaining bytes
	stopped bool
	files   [3]*os.File // in the order of fileNames
	sums    [3]digest
	sizes   [2]int64
	passed  [2]int64 // size of each stream, recorded or not

	order []byte       // not yet written
	last  tools.Stream // stream of the current run
	run   int64
}

// write appends p with found masked. It also masks bytes of found that were written earlier.
func (w *spoolWriter) write(s tools.Stream, p []byte, found []redact.Span) {
	if len(found) > 0 && !w.stopped {
		p = bytes.Clone(p)
	}
	for _, x := range found {
		mask := x.Mask()
		if x.From < 0 {
			w.maskWritten(s, w.passed[s]+int64(x.From), mask[:min(-x.From, len(mask))])
			mask, x.From = mask[min(-x.From, len(mask)):], 0
		}
		if !w.stopped {
			copy(p[x.From:], mask)
		}
	}
	w.passed[s] += int64(len(p))
	if w.stopped {
		return
	}
	p = p[:min(int64(len(p)), w.left)]
	if err := w.tryWrite(s, p); err != nil {
		w.stopped = true
		return
	}
	w.left -= int64(len(p))
	w.stopped = w.stopped || w.left <= 0 // tryWrite may have set stopped
}

// maskWritten masks recorded bytes, because a secret may be recognized late and after the limit has cut it. If that
// fails, the whole record is removed.
func (w *spoolWriter) maskWritten(s tools.Stream, offset int64, mask []byte) {
	mask = mask[:max(0, min(int64(len(mask)), w.sizes[s]-offset))]
	if len(mask) == 0 {
		return
	}
	if _, err := w.files[s].WriteAt(mask, offset); err != nil {
		w.stopped, w.sums, w.sizes, w.order, w.run = true, [3]digest{}, [2]int64{}, nil, 0
		_ = Remove(w.dir) // remaining files have another sum, so they are not shown
		return
	}
	w.sums[s].mask(offset-w.sizes[s], mask)
}

func (w *spoolWriter) tryWrite(s tools.Stream, p []byte) error {
	n, err := w.append(int(s), p)
	if s != w.last {
		if w.left -= int64(w.endRun()); len(w.order) >= 4096 {
			w.flushOrder()
		}
	}
	w.last = s
	w.run += int64(n)
	w.sizes[s] += int64(n)
	return err
}

func (w *spoolWriter) append(file int, p []byte) (n int, err error) {
	f := w.files[file]
	if f == nil {
		if err := os.MkdirAll(w.dir, 0o700); err != nil {
			return 0, err
		}
		if f, err = os.OpenFile(filepath.Join(w.dir, fileNames[file]), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600); err != nil {
			return 0, err
		}
		w.files[file] = f
	}
	n, err = f.Write(p)
	w.sums[file].Write(p[:n])
	return n, err
}

// endRun encodes the current run and returns the size of the code.
func (w *spoolWriter) endRun() int {
	before := len(w.order)
	if w.run > 0 {
		w.order = binary.AppendUvarint(w.order, uint64(w.run)<<1|uint64(w.last))
		w.run = 0
	}
	return len(w.order) - before
}

func (w *spoolWriter) flushOrder() {
	w.endRun()
	if len(w.order) == 0 {
		return
	}
	if _, err := w.append(orderFile, w.order); err != nil {
		w.stopped = true
	}
	w.order = w.order[:0]
}

func (w *spoolWriter) close() {
	if w.files[tools.Stdout] != nil && w.files[tools.Stderr] != nil { // otherwise no order is needed
		w.flushOrder()
	}
	w.stopped = true
	w.order = nil
	for _, f := range w.files {
		if f != nil {
			f.Close()
		}
	}
}

// Spool reads the recorded output of an ended call. It is safe for concurrent use and need not be closed.
type Spool struct{ dir string }

// Open opens the directory of a Capture. The error is fs.ErrNotExist if nothing was recorded.
func Open(dir string) (*Spool, error) {
	if _, err := os.Stat(dir); err != nil {
		return nil, fmt.Errorf("cannot open recorded output: %w", err)
	}
	return &Spool{dir: dir}, nil
}

var errNoFile = errors.New("it is no file of recorded output")

const mostBytes = 64 << 30 // maximum size of a file; the configurable limit is far lower

// openFile opens a regular file. It does not block and does not follow links.
func openFile(dir, name string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if errors.Is(err, syscall.ELOOP) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ENXIO) {
		return nil, errNoFile
	}
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && (!info.Mode().IsRegular() || info.Size() > mostBytes) {
		err = errNoFile
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Size returns the recorded size of a stream.
func (sp *Spool) Size(s tools.Stream) int64 {
	if s == tools.Combined {
		return sp.Size(tools.Stdout) + sp.Size(tools.Stderr)
	}
	info, err := os.Lstat(filepath.Join(sp.dir, s.String()))
	if err != nil {
		return 0
	}
	return info.Size()
}

// ReadAt returns up to most bytes of a stream from offset. eof means that no more bytes are recorded.
func (sp *Spool) ReadAt(s tools.Stream, offset int64, most int) (p []byte, eof bool) {
	p = sp.read(nil, s, max(offset, 0), most)
	return p, len(p) < most
}

// read appends up to most bytes to p. An error counts as the end of the record.
func (sp *Spool) read(p []byte, s tools.Stream, offset int64, most int) []byte {
	if most <= 0 || sp.dir == "" {
		return p
	}
	if s == tools.Combined {
		return sp.readCombined(p, offset, most)
	}
	f, err := openFile(sp.dir, s.String())
	if err != nil {
		return p
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || offset >= info.Size() {
		return p
	}
	return appendFile(p, f, offset, int(min(int64(most), info.Size()-offset)))
}

func appendFile(p []byte, f *os.File, offset int64, n int) []byte {
	p = slices.Grow(p, n)
	n, _ = f.ReadAt(p[len(p):len(p)+n], offset)
	return p[:len(p)+n]
}

// readCombined reads all runs from the beginning. There may be millions, at a few nanoseconds each.
func (sp *Spool) readCombined(p []byte, offset int64, most int) []byte {
	m := merger{offset: offset, most: len(p) + most, out: p}
	for s := range m.files {
		if f, err := openFile(sp.dir, tools.Stream(s).String()); err == nil {
			defer f.Close()
			m.files[s] = f
		}
	}
	if order, err := openFile(sp.dir, fileNames[orderFile]); err == nil {
		defer order.Close()
		m.follow(bufio.NewReader(order))
	}
	for s, f := range m.files { // the rest after the last run
		if f == nil {
			continue
		}
		if info, err := f.Stat(); err == nil {
			m.take(tools.Stream(s), info.Size()-m.used[s])
		}
	}
	return m.out
}

type merger struct {
	files  [2]*os.File
	used   [2]int64 // bytes of each stream passed
	offset int64    // bytes of Combined to skip
	most   int      // final length of out
	out    []byte
}

func (m *merger) follow(order *bufio.Reader) {
	for len(m.out) < m.most {
		v, err := binary.ReadUvarint(order)
		if err != nil {
			return
		}
		m.take(tools.Stream(v&1), int64(v>>1))
	}
}

func (m *merger) take(s tools.Stream, n int64) {
	skip := min(m.offset, n)
	m.offset -= skip
	if want := min(n-skip, int64(m.most-len(m.out))); want > 0 && m.files[s] != nil {
		m.out = appendFile(m.out, m.files[s], m.used[s]+skip, int(want))
	}
	m.used[s] += n
}
