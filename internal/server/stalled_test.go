package server

import (
	"context"
	"runtime"
	"strings"
	"testing"

	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/tools"
)

// flood is what a call prints that nobody reads.
const flood = 200 << 20

// flooding prints as fast as it can.
func flooding(io tools.IO) {
	line := []byte(strings.Repeat("x", 64<<10))
	for range flood / len(line) {
		io.Output(tools.Stdout, line)
	}
}

// heap is the live memory of this process.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func TestAStalledReaderCostsLittleMemory(t *testing.T) {
	must.Long(t)
	printed, end := make(chan struct{}), make(chan struct{})
	ts := newCallServer(t, policy.Allow, func(_ context.Context, io tools.IO) tools.Result {
		io.Started(tools.Started{})
		flooding(io)
		printed <- struct{}{}
		<-end
		return tools.Result{}
	})
	conn := dialAs(t, ts, agentSecret)
	pinged(t, conn)
	before := heap()
	write(t, conn, call("a"), call("b"))
	<-printed
	<-printed
	grown := (heap() - before) / 2
	t.Logf("%d MiB that nobody read cost %d KiB of memory a call", flood>>20, grown>>10)
	if grown > 2<<20 {
		t.Errorf("that is more than 2 MiB")
	}
	close(end)
}
