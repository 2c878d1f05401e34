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

// A spool is the directory of one call: the files "stdout" and "stderr", and "order", which has
// their order as uvarints: twice the length of a run, plus one for stderr. After the last run stdout
// comes first: order is written late, and at the end only if there are both streams.

const orderFile = 2 // of fileNames

// fileNames are the files of a spool: the streams first.
var fileNames = [3]string{tools.Stdout.String(), tools.Stderr.String(), "order"}

// spoolWriter stops at the first error and at the limit, so that the files contain the beginning.
type spoolWriter struct {
	dir     string
	left    int64 // until the limit
	stopped bool
	files   [3]*os.File // by fileNames
	sums    [3]digest
	sizes   [2]int64
	passed  [2]int64 // of each stream, recorded or not

	order []byte       // not written yet
	last  tools.Stream // of the current run
	run   int64
}

// write appends p with found masked, also what of found is in bytes written before.
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
	w.stopped = w.stopped || w.left <= 0 // tryWrite may have stopped it
}

// maskWritten masks recorded bytes from an offset: a secret may be recognised late, and after the limit
// has cut it. If they cannot be masked, all of the record is removed.
func (w *spoolWriter) maskWritten(s tools.Stream, offset int64, mask []byte) {
	mask = mask[:max(0, min(int64(len(mask)), w.sizes[s]-offset))]
	if len(mask) == 0 {
		return
	}
	if _, err := w.files[s].WriteAt(mask, offset); err != nil {
		w.stopped, w.sums, w.sizes, w.order, w.run = true, [3]digest{}, [2]int64{}, nil, 0
		_ = Remove(w.dir) // what stays has another sum, so it is not shown
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

// append writes to one of fileNames, which it creates.
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

// endRun encodes the current run and returns the length of the code.
func (w *spoolWriter) endRun() int {
	before := len(w.order)
	if w.run > 0 {
		w.order = binary.AppendUvarint(w.order, uint64(w.run)<<1|uint64(w.last))
		w.run = 0
	}
	return len(w.order) - before
}

// flushOrder writes the order up to now. The current run continues as a new one.
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
	if w.files[tools.Stdout] != nil && w.files[tools.Stderr] != nil { // otherwise there is no order
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

// Spool reads the recorded output of a call that has ended, for concurrent use. It need not be closed.
type Spool struct{ dir string }

// Open opens the directory of a Capture. If nothing was recorded, the error is fs.ErrNotExist.
func Open(dir string) (*Spool, error) {
	if _, err := os.Stat(dir); err != nil {
		return nil, fmt.Errorf("cannot open recorded output: %w", err)
	}
	return &Spool{dir: dir}, nil
}

var errNoFile = errors.New("it is no file of recorded output")

const mostBytes = 64 << 30 // of a file that is read; what can be configured is far less

// openFile opens a regular file. It waits for nothing and follows no link.
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

// Size returns how many bytes of a stream are recorded.
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

// ReadAt returns at most most bytes of a stream at offset; eof reports that no more are recorded.
func (sp *Spool) ReadAt(s tools.Stream, offset int64, most int) (p []byte, eof bool) {
	p = sp.read(nil, s, max(offset, 0), most)
	return p, len(p) < most
}

// read appends at most most bytes to p. An error counts as the end of the record.
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

// readCombined walks the runs from the start: there may be millions, at a few nanoseconds each.
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
	for s, f := range m.files { // after the last run
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
	used   [2]int64 // bytes already passed
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
