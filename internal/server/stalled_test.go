package server

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/toold/toold/internal/dispatch"
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

// An agent makes and cancels large calls while one of two approvers reads nothing.
func TestAStalledApproverCostsLittleMemory(t *testing.T) {
	must.Long(t)
	ts := newLimitedServer(t, policy.Ask, hello, func(*dispatch.Limits, *Options) {}, func(o *Options) { o.MaxFrameBytes, o.IncomingBytes, o.Idle = 8<<20, 64<<20, time.Hour })
	stalled, reading, agent := dialAs(t, ts, approverSecret), dialAs(t, ts, approverSecret), dialAs(t, ts, agentSecret)
	pinged(t, stalled)
	pinged(t, reading)
	large := strings.Repeat("x", 2<<20)
	asked := func(i int) {
		write(t, agent, strings.Replace(call(fmt.Sprint("call_", i)), `{}`, `{"text":"`+large+`"}`, 1))
		until(t, reading, `"approval_request_message"`)
		write(t, agent, fmt.Sprintf(`{"message_type":"cancel","tool_call_id":"call_%d"}`, i))
		until(t, agent, "tool_return_message")
		until(t, reading, `"approval_resolved"`)
	}
	asked(0) // the writer holds this one
	asked(1)
	before := heap()
	const calls = 12
	for i := range calls {
		asked(i + 2)
	}
	grown := heap() - before
	t.Logf("%d questions of 2 MiB that wait no longer take %d KiB", calls, grown>>10)
	if grown > 12<<20 {
		t.Error("that is more than 12 MiB")
	}
	runtime.KeepAlive(stalled)
}
