package mcp

import (
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// A client that sends without end and reads nothing must not fill the memory with what is not answered.
func TestAClientThatReadsNothingIsNotReadWithoutEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, stalled := io.Pipe()
		to := newSharedWriter(stalled)
		line := `{"jsonrpc":"2.0","id":1,"method":"ping"}` + "\n"
		in := newLines(io.NopCloser(strings.NewReader(strings.Repeat(line, 5000))), to)
		var read atomic.Int32
		// The first ends with the writer, the second with the input.
		go func() {
			to.Write([]byte("answer\n"))
			for range 4000 {
				to.Write([]byte("answer\n"))
			}
			stalled.Close()
		}()
		go func() {
			for p := make([]byte, len(line)); ; read.Add(1) {
				if _, err := io.ReadFull(in, p); err != nil {
					return
				}
			}
		}()
		synctest.Wait()
		if n := read.Load(); n == 0 || n > maxAhead {
			t.Errorf("%d messages were read, and none was answered", n)
		}
		io.Copy(io.Discard, client)
		synctest.Wait()
		if n := read.Load(); n != 5000 {
			t.Errorf("%d messages were read when the answers were, want 5000", n)
		}
	})
}

func TestAnIDThatIsNotAnsweredAsItIsIsRefused(t *testing.T) {
	t.Parallel()
	for id, wanted := range map[string]bool{
		`1`: true, `-1`: true, `"1.5"`: true, `9007199254740992`: true, `9007199254740993`: false, `99999999999999999999`: false, `1.5`: false, `1e2`: false, `-9223372036854775808`: false,
	} {
		if err := check([]byte(`{"jsonrpc":"2.0","id":` + id + `,"method":"ping"}`)); (err == nil) != wanted {
			t.Errorf("id %s: %v", id, err)
		}
	}
}
