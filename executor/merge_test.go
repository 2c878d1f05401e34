package executor

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"
)

type tape struct {
	all     bytes.Buffer
	streams [2]bytes.Buffer
	spliced bool // a piece of one stream followed an unfinished line of the other
	last    int
}

func (t *tape) emit(s int, p []byte) {
	if b := t.all.Bytes(); len(b) > 0 && t.last != s && b[len(b)-1] != '\n' {
		t.spliced = true
	}
	t.last = s
	t.all.Write(p)
	t.streams[s].Write(p)
}

// kernel plays a process that writes to two streams: bytes come, then the report; equal
// neighbours that were not read are reported once.
type kernel struct {
	m       *merger
	bytes   [2][]byte
	reports []int
}

func (k *kernel) insert(s int, text string) { k.bytes[s] = append(k.bytes[s], text...) }

func (k *kernel) report(s int) {
	if n := len(k.reports); n == 0 || k.reports[n-1] != s {
		k.reports = append(k.reports, s)
	}
}

func (k *kernel) read(now time.Duration) {
	for _, s := range k.reports {
		k.m.wrote(s)
	}
	k.reports = nil
	for s := range k.bytes {
		for len(k.bytes[s]) > 0 {
			n := copy(k.m.space(s), k.bytes[s])
			k.bytes[s] = k.bytes[s][n:]
			k.m.added(s, n, now)
			if len(k.bytes[s]) > 0 {
				k.m.settle(now)
			}
		}
	}
	k.m.settle(now)
}

// FuzzMerger plays writes and reads at any moment. Each stream is passed on as it was. Where
// each write is a line and the merger is sure, the view is in order; it is always sure of lines
// that alternate.
func FuzzMerger(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 9, 8, 0xff, 0x80, 1, 1, 2, 6, 5, 4}, byte(0))
	f.Add([]byte("some text with all kinds of bits"), byte(1))
	f.Add([]byte("some text with all kinds of bits"), byte(2))
	f.Fuzz(func(t *testing.T, steps []byte, kind byte) {
		alternate, halves := kind%3 > 0, kind%3 == 2
		var out tape
		k := kernel{m: newMerger(true, out.emit)}
		var want bytes.Buffer
		var streams [2]bytes.Buffer
		for i, step := range steps[:min(len(steps), 4000)] {
			s, text := int(step&1), fmt.Sprintln(i)
			switch {
			case halves:
				s, text = i>>1&1, []string{fmt.Sprint(i), "\n"}[i&1]
			case alternate:
				s = i & 1
			}
			want.WriteString(text)
			streams[s].WriteString(text)
			k.insert(s, text)
			if step&2 != 0 {
				k.read(0)
			}
			k.report(s)
			if step&4 != 0 {
				k.read(0)
			}
		}
		k.read(0)
		k.m.close(0)
		for s := range streams {
			if got := out.streams[s].String(); got != streams[s].String() {
				t.Fatalf("stream %d is %q, want %q", s, got, streams[s].String())
			}
		}
		if out.spliced {
			t.Fatalf("a line is broken: %q", out.all.String())
		}
		if got := out.all.String(); got != want.String() && (alternate || !k.m.unsure) {
			t.Fatalf("merged %q, want %q (unsure %v)", got, want.String(), k.m.unsure)
		}
		if alternate && !halves && k.m.unsure {
			t.Fatalf("unsure of lines that alternate: %q", out.all.String())
		}
	})
}

// The first line went to /dev/tty. Its bytes were taken for the write of the third, which was
// reported first.
func TestALateReportOfAnotherNameMakesTheOrderUnsure(t *testing.T) {
	t.Parallel()
	for delay, want := range map[time.Duration]bool{0: true, reportWait - 1: true, 10 * reportWait: false} { // of a terminal elsewhere
		var out tape
		k := kernel{m: newMerger(true, out.emit)}
		k.insert(0, "1\n")
		k.insert(1, "2\n")
		k.report(1)
		k.insert(0, "3\n")
		k.report(0)
		k.read(time.Second)
		if got := out.all.String(); got != "2\n1\n3\n" || k.m.unsure {
			t.Fatalf("merged %q, unsure: %v", got, k.m.unsure)
		}
		k.m.strayed()
		k.m.settle(time.Second + delay)
		if k.m.close(time.Second + delay); k.m.unsure != want {
			t.Errorf("a report after %v: unsure is %v", delay, k.m.unsure)
		}
	}
}

// A terminal elsewhere says nothing of a command that has printed nothing yet.
func TestAnEarlyReportOfAnotherNameLeavesTheOrderSure(t *testing.T) {
	t.Parallel()
	var out tape
	k := kernel{m: newMerger(true, out.emit)}
	k.m.strayed()
	k.m.settle(0)
	if k.m.close(0); k.m.unsure {
		t.Error("it is unsure")
	}
}

// FuzzMergerKeepsStreams gives a merger writes without line ends, bytes without reports,
// reports without bytes, and time that passes.
func FuzzMergerKeepsStreams(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 250, 251, 252, 253, 254, 255}, true)
	f.Fuzz(func(t *testing.T, steps []byte, watched bool) {
		var out tape
		k := kernel{m: newMerger(watched, out.emit)}
		var streams [2]bytes.Buffer
		var now time.Duration
		timeless := true
		for _, step := range steps[:min(len(steps), 4000)] {
			s := int(step & 1)
			text := []string{"a", "b\n", "c\nd\n", "\n", "e\nf", "", strings.Repeat("g", 3000), "h\n"}[step>>1&7]
			switch step >> 4 & 7 {
			case 0:
				k.report(s)
			case 1:
				k.read(now)
			case 2:
				now += time.Duration(step) * time.Millisecond
				timeless = false
				k.m.settle(now)
			case 3:
				k.m.strayed()
			default:
				k.insert(s, text)
				streams[s].WriteString(text)
				if step&0x80 == 0 {
					k.report(s)
				}
			}
			if due, waits := k.m.due(); waits && due < 0 {
				t.Fatalf("due at %v", due)
			}
			timeless = timeless && streams[s].Len() < mergeBuffer
		}
		k.read(now)
		if timeless && out.spliced {
			t.Fatalf("a line is broken: %q", out.all.String())
		}
		k.m.close(now)
		for s := range streams {
			if got := out.streams[s].String(); got != streams[s].String() {
				t.Fatalf("stream %d is %q, want %q", s, got, streams[s].String())
			}
		}
	})
}
