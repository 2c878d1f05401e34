package spool

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/toold/toold/tools"
)

// A spool is a folder of one call: the files "stdout" and "stderr" hold the
// streams; "order" tells how they came, as a list of uvarints: twice the length
// of a run, plus one if it is of stderr. What order does not tell (it is
// written late, and only when there are both streams) came stdout first.

const orderName = "order"

// spoolWriter appends to the files of a call. It stops for good at the first
// error and at the cap, so that the files are always a beginning of what came.
type spoolWriter struct {
	dir     string
	left    int64 // bytes until the cap
	stopped bool
	files   [2]*os.File

	orderFile *os.File
	order     []byte       // encoded runs, not written yet
	last      tools.Stream // of the run that is counted
	run       int64
}

func (w *spoolWriter) write(s tools.Stream, p []byte) {
	if w.stopped {
		return
	}
	p = p[:min(int64(len(p)), w.left)]
	if err := w.tryWrite(s, p); err != nil {
		w.stopped = true
		return
	}
	w.left -= int64(len(p))
	w.stopped = w.left <= 0
}

func (w *spoolWriter) tryWrite(s tools.Stream, p []byte) error {
	if w.files[s] == nil {
		f, err := w.create(s.String())
		if err != nil {
			return err
		}
		w.files[s] = f
	}
	n, err := w.files[s].Write(p)
	if s != w.last && w.run > 0 {
		w.endRun()
	}
	w.last = s
	w.run += int64(n)
	return err
}

func (w *spoolWriter) create(name string) (*os.File, error) {
	if err := os.MkdirAll(w.dir, 0o700); err != nil {
		return nil, err
	}
	return os.OpenFile(filepath.Join(w.dir, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o600)
}

func (w *spoolWriter) endRun() {
	before := len(w.order)
	w.order = binary.AppendUvarint(w.order, uint64(w.run)<<1|uint64(w.last))
	w.run = 0
	w.left -= int64(len(w.order) - before)
	if len(w.order) >= 4096 {
		w.flushOrder()
	}
}

// flushOrder writes what is known of the order, the current run included; it
// goes on as a new one.
func (w *spoolWriter) flushOrder() {
	if w.run > 0 {
		w.order = binary.AppendUvarint(w.order, uint64(w.run)<<1|uint64(w.last))
		w.run = 0
	}
	if len(w.order) == 0 {
		return
	}
	if err := w.appendOrder(); err != nil {
		w.stopped = true
	}
	w.order = w.order[:0]
}

func (w *spoolWriter) appendOrder() error {
	if w.orderFile == nil {
		f, err := w.create(orderName)
		if err != nil {
			return err
		}
		w.orderFile = f
	}
	_, err := w.orderFile.Write(w.order)
	return err
}

func (w *spoolWriter) close() {
	if w.files[tools.Stdout] != nil && w.files[tools.Stderr] != nil { // else there is no order to tell
		w.flushOrder()
	}
	w.stopped = true
	w.order = nil
	for _, f := range []*os.File{w.files[tools.Stdout], w.files[tools.Stderr], w.orderFile} {
		if f != nil {
			f.Close() // nothing is lost by an error: the bytes are written
		}
	}
}

// Spool reads the recorded output of a call that has ended. It holds no open
// files and may be used concurrently.
type Spool struct{ dir string }

// Open finds the spool files of a call in the folder that its Capture was
// given. A call that printed nothing has none: the error is fs.ErrNotExist.
func Open(dir string) (*Spool, error) {
	if _, err := os.Stat(dir); err != nil {
		return nil, fmt.Errorf("cannot open recorded output: %w", err)
	}
	return &Spool{dir: dir}, nil
}

// Size is how many bytes of a stream are recorded.
func (sp *Spool) Size(s tools.Stream) int64 {
	if s == tools.Combined {
		return sp.Size(tools.Stdout) + sp.Size(tools.Stderr)
	}
	info, err := os.Stat(filepath.Join(sp.dir, s.String()))
	if err != nil {
		return 0
	}
	return info.Size()
}

// ReadAt returns at most most bytes of a stream, also of Combined, from an
// offset on; eof tells that nothing more is recorded.
func (sp *Spool) ReadAt(s tools.Stream, offset int64, most int) (p []byte, eof bool) {
	p = sp.read(nil, s, max(offset, 0), most)
	return p, len(p) < most
}

// read appends to p as much of most bytes as there is. Errors count as the end of
// the record: there is nothing else a reader could do.
func (sp *Spool) read(p []byte, s tools.Stream, offset int64, most int) []byte {
	if most <= 0 || sp.dir == "" {
		return p
	}
	if s == tools.Combined {
		return sp.readCombined(p, offset, most)
	}
	f, err := os.Open(filepath.Join(sp.dir, s.String()))
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

// appendFile appends n bytes of a file to p, or as many as can be read.
func appendFile(p []byte, f *os.File, offset int64, n int) []byte {
	p = slices.Grow(p, n)
	n, _ = f.ReadAt(p[len(p):len(p)+n], offset)
	return p[:len(p)+n]
}

// readCombined walks the runs from the start: there may be millions, but each
// costs some nanoseconds.
func (sp *Spool) readCombined(p []byte, offset int64, most int) []byte {
	m := merger{offset: offset, most: len(p) + most, out: p}
	for s := range m.files {
		if f, err := os.Open(filepath.Join(sp.dir, tools.Stream(s).String())); err == nil {
			defer f.Close()
			m.files[s] = f
		}
	}
	if order, err := os.Open(filepath.Join(sp.dir, orderName)); err == nil {
		defer order.Close()
		m.follow(bufio.NewReader(order))
	}
	for s, f := range m.files { // what order does not tell
		if f == nil {
			continue
		}
		if info, err := f.Stat(); err == nil {
			m.take(tools.Stream(s), info.Size()-m.used[s])
		}
	}
	return m.out
}

// merger reads a part of the combined stream from the files of both.
type merger struct {
	files  [2]*os.File
	used   [2]int64 // bytes of each stream that lie behind
	offset int64    // bytes of the combined stream still to skip
	most   int      // bytes of out, those included that were there before
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

// take goes n bytes on in one stream and keeps those that are wanted.
func (m *merger) take(s tools.Stream, n int64) {
	skip := min(m.offset, n)
	m.offset -= skip
	if want := min(n-skip, int64(m.most-len(m.out))); want > 0 && m.files[s] != nil {
		m.out = appendFile(m.out, m.files[s], m.used[s]+skip, int(want))
	}
	m.used[s] += n
}
