package chain_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toold/toold/internal/journal/chain"
	"github.com/toold/toold/internal/must"
)

// childDir names the directory of the log for this binary when it plays another process.
const childDir = "CHAIN_TEST_CHILD_DIR"

func TestMain(m *testing.M) {
	if path := os.Getenv(childDir); path != "" {
		fmt.Fprintln(os.Stderr, appendUntilKilled(path))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// appendUntilKilled prints what it has appended, once it is on the disk.
func appendUntilKilled(path string) error {
	dir, err := chain.Directory(path)
	if err != nil {
		return err
	}
	l, err := chain.Open(chain.Options{Dir: dir, Notes: dir, Note: "head", SegmentBytes: 20_000, Wait: time.Minute, Seen: func(chain.Record) error { return nil }})
	if err != nil {
		return err
	}
	for i := 0; ; i++ {
		text := fmt.Sprint(os.Getpid(), "-", i)
		err := l.Update(func(b *chain.Batch) error {
			h, err := b.Blob([]byte(text))
			if err != nil {
				return err
			}
			for _, part := range []string{text, text + "b"} {
				if _, err := b.Append('m', append([]byte(part), append(make([]byte, 300), h[:]...)...)); err != nil {
					return err
				}
			}
			return nil
		})
		if err == nil {
			err = l.Sync(l.Last().Number)
		}
		if err == nil {
			err = l.Extend()
		}
		if err != nil {
			return err
		}
		fmt.Println(text)
	}
}

// Several processes append to one log, and each is killed at some time, with the lock or
// without, and replaced by another one.
func TestKilledProcessesLoseNothingThatWasPromised(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "log")
	var mu sync.Mutex
	var promised []string
	var all sync.WaitGroup
	for w := range 3 {
		all.Go(func() {
			for round := range 8 {
				lines := untilKilled(t, path, 1+(w+round)%5)
				mu.Lock()
				promised = append(promised, lines...)
				mu.Unlock()
			}
		})
	}
	all.Wait()
	dir := directory(t, path)
	o := chain.Options{Dir: dir, Notes: dir, Note: "head", SegmentBytes: 20_000, Wait: time.Minute, Seen: func(chain.Record) error { return nil }}
	l, err := chain.Open(o) // cuts what the last one left
	must.Do(t, err)
	must.Do(t, l.Close())
	found := map[string]int{}
	o.Seen = func(r chain.Record) error {
		text := string(r.Body[:len(r.Body)-332])
		found[text]++
		_, err := chain.ReadBlob(dir, r.Segment, chain.Hash(r.Body[len(r.Body)-32:]), int64(len(strings.TrimSuffix(text, "b"))))
		return err
	}
	last, rest, err := chain.Verify(o)
	if err != nil || rest != 0 {
		t.Fatalf("%d bytes left, %v", rest, err)
	}
	for _, text := range promised {
		if found[text] != 1 || found[text+"b"] != 1 {
			t.Errorf("%s is in the log %d times", text, found[text])
		}
	}
	t.Logf("%d records in %d segments, %d updates were promised", last.Number, last.Segment, len(promised))
}

// untilKilled starts a process, kills it when it has printed some lines, and returns all
// that it printed.
func untilKilled(t *testing.T, path string, lines int) (printed []string) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childDir+"="+path)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Error(err)
		return nil
	}
	in := bufio.NewScanner(out)
	for len(printed) < lines && in.Scan() {
		printed = append(printed, in.Text())
	}
	if len(printed) < lines {
		t.Error("a process ended by itself")
	}
	_ = cmd.Process.Kill()
	for in.Scan() {
		printed = append(printed, in.Text())
	}
	_ = cmd.Wait()
	return printed
}
