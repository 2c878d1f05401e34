package spool

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/internal/redact"
	"github.com/toold/toold/tools"
)

// script writes n random pieces to both streams and returns what they make.
func script(c *Capture, random *rand.Rand, n int) (want [3][]byte) {
	for range n {
		s := tools.Stream(random.IntN(2))
		p := []byte(strings.Repeat("zeile é 😀\n", 1+random.IntN(8)))[:1+random.IntN(12)]
		c.Write(s, p)
		want[s] = append(want[s], p...)
		want[tools.Combined] = append(want[tools.Combined], p...)
	}
	return want
}

// verifyGone verifies that no n bytes of a secret are left in a text.
func verifyGone(t *testing.T, text, secret string, n int) {
	t.Helper()
	for at := 0; at+n <= len(secret); at++ {
		if strings.Contains(text, secret[at:at+n]) {
			t.Fatalf("%q is left in %q", secret[at:at+n], text)
		}
	}
}

func readAll(t *testing.T, read func(offset int64) (p []byte, from int64, eof bool)) []byte {
	t.Helper()
	var all []byte
	for {
		p, from, eof := read(int64(len(all)))
		if from != int64(len(all)) {
			t.Fatalf("gap from %d to %d", len(all), from)
		}
		all = append(all, p...)
		if eof {
			return all
		}
		if len(p) == 0 {
			t.Fatalf("nothing at %d and not the end", len(all))
		}
	}
}

func TestEverythingPrintedCanBeReadBackFromMemoryAndFiles(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "call")
	c := NewCapture(Options{Dir: dir, Keep: 100})
	want := script(c, rand.New(rand.NewPCG(1, 2)), 3000)
	for s := range want {
		p, from, eof := c.ReadAt(tools.Stream(s), 150, 1<<20)
		if diff := cmp.Diff(want[s][150:], p); diff != "" || from != 150 || eof {
			t.Errorf("%v while running, from %d, eof %v: %s", tools.Stream(s), from, eof, diff)
		}
	}
	c.Close()
	for s := range want {
		got := readAll(t, func(at int64) ([]byte, int64, bool) { return c.ReadAt(tools.Stream(s), at, 777) })
		if diff := cmp.Diff(want[s], got); diff != "" {
			t.Errorf("%v from the capture: %s", tools.Stream(s), diff)
		}
	}
	spool := must.Get(Open(dir))(t)
	for s := range want {
		got := readAll(t, func(at int64) ([]byte, int64, bool) {
			p, eof := spool.ReadAt(tools.Stream(s), at, 777)
			return p, at, eof
		})
		if diff := cmp.Diff(want[s], got); diff != "" {
			t.Errorf("%v from the files: %s", tools.Stream(s), diff)
		}
	}
}

func TestFilesOfACallAreForTheDaemonOnly(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "call")
	c := NewCapture(Options{Dir: dir})
	if _, err := Open(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("files before the first byte: %v", err)
	}
	c.Write(tools.Stdout, []byte("a"))
	c.Write(tools.Stderr, []byte("b"))
	c.Close()
	got := map[string]fs.FileMode{}
	must.Do(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil {
			got[d.Name()] = info.Mode()
		}
		return err
	}))
	want := map[string]fs.FileMode{"call": fs.ModeDir | 0o700, "stdout": 0o600, "stderr": 0o600, "order": 0o600}
	must.Match(t, want, got)
}

func TestPastTheCapOnlyHeadAndTailAreKept(t *testing.T) {
	t.Parallel()
	c := NewCapture(Options{Dir: filepath.Join(t.TempDir(), "call"), SpoolBytes: 1000, Keep: 100})
	for range 500 {
		c.Write(tools.Stdout, []byte("0123456789"))
	}
	c.Close()
	if stdout, stderr, closed := c.Totals(); stdout != 5000 || stderr != 0 || !closed {
		t.Errorf("totals %d, %d, %v", stdout, stderr, closed)
	}
	p, from, eof := c.ReadAt(tools.Stdout, 0, 1<<20)
	if len(p) != 1000 || from != 0 || eof {
		t.Errorf("got %d bytes from %d, eof %v; want the 1000 that were spooled", len(p), from, eof)
	}
	p, from, eof = c.ReadAt(tools.Stdout, 1000, 1<<20)
	if len(p) != 100 || from != 4900 || !eof {
		t.Errorf("got %d bytes from %d, eof %v; want the tail", len(p), from, eof)
	}
	for limit, want := range map[int]string{200: "} returns those up to byte 1000, the others are not kept …]", 4000: "} returns them …]"} {
		c := NewCapture(Options{Dir: filepath.Join(t.TempDir(), "call"), SpoolBytes: int64(limit * 5), Keep: 100})
		c.Write(tools.Stdout, bytes.Repeat([]byte("0123456789"), 500))
		c.Close()
		if text, _ := c.Text(tools.Stdout, 200); !strings.Contains(string(text), want) {
			t.Errorf("with %d bytes kept: %q", limit*5, text)
		}
	}
}

func TestAFullDiskDoesNotDisturbTheCommand(t *testing.T) {
	t.Parallel()
	blocked := filepath.Join(t.TempDir(), "file")
	must.Do(t, os.WriteFile(blocked, nil, 0o600))
	c := NewCapture(Options{Dir: filepath.Join(blocked, "call"), Keep: 10, Call: "call_1"})
	c.Write(tools.Stdout, []byte("0123456789abcdefghijklmnopqrstuvwxyz"))
	c.Close()
	text, truncated := c.Text(tools.Stdout, 20)
	want := "0123456789\n[… 16 of 36 bytes omitted; they are not kept …]\nqrstuvwxyz"
	if string(text) != want || !truncated {
		t.Errorf("got %q, %v", text, truncated)
	}
}

func TestTextIsWholeOrHeadAndTailCutBetweenCharacters(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		in, head, tail string
		limit          int
	}{
		{"short", "short", "", 5},
		{"", "", "", 5},
		{"0123456789", "01", "89", 4},
		{"0123456789", "01", "89", 5},
		{"0123456789", "", "", 0},
		{"0123456789", "", "", -1},
		{"aééééz", "aé", "éz", 8},
		{"0123456789abcdefghij", "01234567", "cdefghij", 17}, // the tail's beginning is still in the head
		{strings.Repeat("x", 100) + "end", "xxxxxxxxxx", "xxxxxxxend", 1000},
	} {
		c := NewCapture(Options{Keep: 10})
		c.Write(tools.Stdout, []byte(tc.in))
		text, truncated := c.Text(tools.Stdout, tc.limit)
		head, tail := string(text), ""
		if truncated {
			head, tail, _ = strings.Cut(head, "\n[… ")
			_, tail, _ = strings.Cut(tail, " …]\n")
		}
		if head != tc.head || tail != tc.tail || truncated != (tc.head+tc.tail != tc.in) {
			t.Errorf("Text of %q within %d = %q … %q, %v", tc.in, tc.limit, head, tail, truncated)
		}
	}
}

func TestSecretsAreRedactedWhereverWritesCutThem(t *testing.T) {
	t.Parallel()
	secrets := []string{"hunter2", "hunter2-long", "aab", ""}
	in := "x hunter2 hunter2-lon hunter2-long aaab hunter"
	want := "x [redacted] [redacted]-lon [redacted] a[redacted] hunter"
	for size := 1; size <= len(in); size++ {
		c := NewCapture(Options{Redact: secrets})
		for rest := in; rest != ""; {
			n := min(size, len(rest))
			c.Write(tools.Stdout, []byte(rest[:n]))
			rest = rest[n:]
			if text, _ := c.Text(tools.Stdout, 1000); !strings.HasPrefix(want, string(text)) {
				t.Fatalf("pieces of %d: %q shown", size, text)
			}
		}
		c.Close()
		if text, _ := c.Text(tools.Stdout, 1000); string(text) != want {
			t.Errorf("pieces of %d: %q", size, text)
		}
	}
}

// A secret that the other stream splits leaves no halves in the record of the combined output.
func TestASecretThatTheOtherStreamSplitsLeavesNothing(t *testing.T) {
	t.Parallel()
	token := "gh" + "p_" + strings.Repeat("aB3dE6", 9)
	for _, secret := range []string{token, "hunter2-long"} {
		for _, keep := range []int{0, 100} { // with head and tail, too
			for cut := 1; cut < len(secret); cut++ {
				c := NewCapture(Options{Redact: []string{"hunter2-long"}, Keep: keep})
				c.Write(tools.Stderr, []byte("first\n"))
				for range keep * mostTurns / 150 { // more turns than are kept
					c.Write(tools.Stdout, []byte("o\n"))
					c.Write(tools.Stderr, []byte("e\n"))
				}
				c.Write(tools.Stdout, []byte("a "+secret[:cut]))
				c.Write(tools.Stderr, []byte(" between\n"))
				next := min(len(secret), cut+5)
				c.Write(tools.Stdout, []byte(secret[cut:next]))
				c.Write(tools.Stderr, []byte(" again\n"))
				c.Write(tools.Stdout, []byte(secret[next:]+" b\n"))
				c.Close()
				text, _ := c.Text(tools.Combined, 1000)
				piece, _, _ := c.ReadAt(tools.Combined, int64(min(keep, 1))*c.windows[tools.Combined].oldest(), 1000)
				for _, got := range [][]byte{text, piece} {
					recorded := string(redact.Mask(got))
					verifyGone(t, recorded, secret, 4)
					if !strings.Contains(recorded, "between\n") || !strings.Contains(recorded, " again\n") || !strings.HasSuffix(recorded, " b\n") {
						t.Fatalf("%q cut at %d: %q", secret, cut, recorded)
					}
				}
			}
		}
	}
}

// TestTokensAreMaskedInFilesOnly, with the bytes of both streams in their places.
func TestTokensAreMaskedInFilesOnly(t *testing.T) {
	t.Parallel()
	token := "gh" + "p_" + strings.Repeat("aB3dE6", 6)
	for cut := 1; cut < len(token); cut++ {
		dir := filepath.Join(t.TempDir(), "call")
		c := NewCapture(Options{Dir: dir, SpoolBytes: 60})
		c.Write(tools.Stdout, []byte("a "+token[:cut]))
		c.Write(tools.Stderr, []byte("between\n"))
		c.Write(tools.Stdout, []byte(token[cut:]+" b\n"))
		if text, _ := c.Text(tools.Stdout, 1000); string(text) != "a "+token+" b\n" {
			t.Fatalf("in memory: %q", text)
		}
		c.Close()
		sp := must.Get(Open(dir))(t)
		p, _ := sp.ReadAt(tools.Combined, 0, 1000)
		all := string(p)
		before, after, found := strings.Cut(all, "between\n")
		whole := before + after
		if !found || len(before) != 2+cut || !strings.HasPrefix(whole, "a ") || !strings.HasPrefix("a "+strings.Repeat("x", len(token))+" b\n", "a "+strings.Repeat("x", max(0, len(whole)-2-len(" b\n")))) {
			t.Fatalf("cut at %d: %q", cut, all)
		}
		verifyGone(t, whole, token, 6)
	}
}

func TestATokenIsMaskedThatTheLimitCuts(t *testing.T) {
	t.Parallel()
	token := "gh" + "p_" + strings.Repeat("aB3dE6", 6)
	for limit := 1; limit < 2+len(token); limit++ {
		dir := filepath.Join(t.TempDir(), "call")
		c := NewCapture(Options{Dir: dir, SpoolBytes: int64(limit)})
		for _, b := range []byte("a " + token + " b\n") {
			c.Write(tools.Stdout, []byte{b})
		}
		c.Close()
		sp := must.Get(Open(dir))(t)
		p, _ := sp.ReadAt(tools.Stdout, 0, 1000)
		if want := "a [redacted]" + strings.Repeat("*", len(token)); string(p) != want[:limit] {
			t.Errorf("%d bytes may be recorded: %q", limit, p)
		}
	}
}

// TestATokenIsMaskedThatTheLimitOfAReturnCuts, in what is recorded of the return.
func TestATokenIsMaskedThatTheLimitOfAReturnCuts(t *testing.T) {
	t.Parallel()
	token := "gh" + "p_" + strings.Repeat("aB3dE6", 6)
	for _, keep := range []int{1000, 1 << 10 << 6} {
		for cut := range len(token) + 1 {
			for _, lines := range [][2]string{
				{strings.Repeat("x", 99-cut) + " " + token + "\n", strings.Repeat("y\n", keep)},
				{strings.Repeat("x\n", keep), token + " " + strings.Repeat("y", 99-cut)},
			} {
				c := NewCapture(Options{Keep: keep})
				c.Write(tools.Stdout, []byte(lines[0]))
				c.Write(tools.Stdout, []byte(lines[1]))
				c.Close()
				for _, s := range []tools.Stream{tools.Stdout, tools.Combined} {
					text, truncated := c.Text(s, 200)
					if !truncated {
						t.Fatalf("cut at %d: all of it is returned", cut)
					}
					verifyGone(t, string(redact.Mask(text)), token, 6)
				}
			}
		}
	}
}

func TestLiveReaderSeesEveryByteAndNoHalfCharacter(t *testing.T) {
	t.Parallel()
	c := NewCapture(Options{Dir: filepath.Join(t.TempDir(), "call"), Keep: 64})
	var want [3][]byte
	var writer sync.WaitGroup
	writer.Go(func() {
		want = script(c, rand.New(rand.NewPCG(3, 4)), 4000)
		c.Close()
	})
	var got []byte
	for {
		changed := c.Changed()
		p, from := c.Next(tools.Stdout, int64(len(got)), make([]byte, 50))
		if from != int64(len(got)) {
			t.Fatalf("gap from %d to %d", len(got), from)
		}
		got = append(got, p...)
		if len(p) > 0 {
			continue
		}
		if total, _, closed := c.Totals(); closed && total == int64(len(got)) {
			break
		}
		<-changed
	}
	writer.Wait()
	if !bytes.Equal(got, want[tools.Stdout]) {
		t.Error(cmp.Diff(want[tools.Stdout], got))
	}
}

func TestACharacterIsHeldBackUntilItsRestComes(t *testing.T) {
	t.Parallel()
	c := NewCapture(Options{})
	next := func(offset int64) string {
		p, _ := c.Next(tools.Stdout, offset, make([]byte, 1024))
		return string(p)
	}
	c.Write(tools.Stdout, []byte("a\xf0\x9f\x98"))
	if got := next(0); got != "a" {
		t.Errorf("got %q before the rest came", got)
	}
	c.Write(tools.Stdout, []byte("\x80\xff"))
	if got := next(1); got != "😀\xff" {
		t.Errorf("got %q; invalid bytes are not waited for", got)
	}
	c.Write(tools.Stdout, []byte("\xf0"))
	c.Close()
	if got := next(6); got != "\xf0" {
		t.Errorf("got %q at the end", got)
	}
}

func TestASlowReaderGetsAGapThatStartsAtACharacter(t *testing.T) {
	t.Parallel()
	c := NewCapture(Options{Keep: 10})
	c.Write(tools.Stdout, []byte(strings.Repeat("é", 100)+"x"))
	p, from := c.Next(tools.Stdout, 0, make([]byte, 4))
	if string(p) != "éé" || from != 0 {
		t.Errorf("head: %q from %d", p, from)
	}
	p, from = c.Next(tools.Stdout, 50, make([]byte, 1024))
	if string(p) != "ééééx" || from != 192 {
		t.Errorf("tail: %q from %d", p, from)
	}
	if !utf8.Valid(p) {
		t.Error("cut inside of a character")
	}
}

func TestReaderSleepsUntilThereIsMore(t *testing.T) {
	t.Parallel()
	c := NewCapture(Options{})
	changed := c.Changed()
	select {
	case <-changed:
		t.Fatal("changed without a change")
	default:
	}
	c.Write(tools.Stderr, []byte("x"))
	wait(t, changed)
	changed = c.Changed()
	c.Close()
	wait(t, changed)
	wait(t, c.Changed())
	c.Write(tools.Stdout, []byte("late"))
	if stdout, stderr, _ := c.Totals(); stdout != 0 || stderr != 1 {
		t.Errorf("totals %d, %d", stdout, stderr)
	}
}

func wait(t *testing.T, changed <-chan struct{}) {
	t.Helper()
	select {
	case <-changed:
	case <-t.Context().Done():
		t.Fatal(context.Cause(t.Context()))
	}
}

func BenchmarkCapture(b *testing.B) {
	chunk := bytes.Repeat([]byte("a line of output of a command\n"), 32<<10/30)
	b.Run("chunks of 32 KiB", func(b *testing.B) {
		c := NewCapture(Options{Dir: filepath.Join(b.TempDir(), "call"), SpoolBytes: 1 << 30, Redact: []string{"secret-one", "secret-two"}})
		b.SetBytes(int64(len(chunk)))
		for b.Loop() {
			c.Write(tools.Stdout, chunk)
		}
	})
	b.Run("small call", func(b *testing.B) {
		b.ReportAllocs()
		dir := b.TempDir()
		for i := 0; b.Loop(); i++ {
			c := NewCapture(Options{Dir: filepath.Join(dir, strconv.Itoa(i))})
			c.Write(tools.Stdout, chunk[:30])
			c.Close()
		}
	})
}

// FuzzTurns follows the turns of both streams to their end, with pieces of any size.
func FuzzTurns(f *testing.F) {
	f.Add([]byte{1, 2, 3, 200, 9, 8}, uint8(3))
	f.Fuzz(func(t *testing.T, writes []byte, most uint8) {
		c := NewCapture(Options{})
		want := ""
		for i, w := range writes[:min(len(writes), mostTurns/2)] {
			s := tools.Stream(w & 1)
			text := strings.Repeat(string(rune('a'+i%26)), int(w>>1))
			c.Write(s, []byte(text))
			want += text
		}
		c.Close()
		got := ""
		var at [2]int64
		for {
			s, n := c.Turn(at)
			if n == 0 {
				break
			}
			p, from := c.Next(s, at[s], make([]byte, min(n, int64(most)+1)))
			if from != at[s] || len(p) == 0 {
				break // not kept
			}
			got += string(p)
			at[s] += int64(len(p))
		}
		if !strings.HasPrefix(want, got) || len(want) <= 64<<10 && got != want {
			t.Fatalf("got %q, want %q", got, want)
		}
	})
}

func TestAReaderFarBehindGetsAllOfBothStreams(t *testing.T) {
	t.Parallel()
	c := NewCapture(Options{Keep: 1 << 20})
	for range mostTurns {
		c.Write(tools.Stdout, []byte("o"))
		c.Write(tools.Stderr, []byte("e"))
	}
	c.Close()
	var at [2]int64
	for {
		s, n := c.Turn(at)
		if n == 0 {
			break
		}
		at[s] += n
	}
	if at != [2]int64{mostTurns, mostTurns} {
		t.Errorf("it got %v", at)
	}
}
