package dispatch

import (
	"encoding/json"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/message"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/tools"
)

// slowBuild is a probe that takes until release to parse its arguments.
type slowBuild struct {
	probe
	entered chan struct{}
	release chan struct{}
	now     atomic.Int32
	most    atomic.Int32
}

func (p *slowBuild) Build(json.RawMessage) (tools.Invocation, error) {
	if n := p.now.Add(1); n > p.most.Load() {
		p.most.Store(n)
	}
	p.entered <- struct{}{}
	<-p.release
	p.now.Add(-1)
	return &p.probe, nil
}

func TestFewCallsAreParsedAtOnceAndAWaitingOneCanBeCancelled(t *testing.T) {
	t.Parallel()
	most := runtime.GOMAXPROCS(0)
	slow := &slowBuild{entered: make(chan struct{}, most+8), release: make(chan struct{})}
	b := newBench(t, policy.Allow, &slow.probe)
	registry := must.Get(tools.NewRegistry(slow))(t)
	b.workspace.opt.Registry, b.opt.Limits.Waiting = registry, most+8

	type sent struct {
		w    *Watcher
		wake <-chan struct{}
	}
	var calls []sent
	for i := range most {
		w, wake := b.submit(fmt.Sprint("parsed-", i), `{}`)
		calls = append(calls, sent{w, wake})
		<-slow.entered
	}
	w, wake := b.submit("waits", `{}`)
	w.Call().Cancel("")
	if ret := final(t, w, wake).Return; ret == nil || ret.ErrorType == nil || *ret.ErrorType != message.Cancelled {
		t.Errorf("the call that waited to be parsed returned %+v, want cancelled", ret)
	}
	close(slow.release)
	for _, c := range calls {
		if ret := final(t, c.w, c.wake).Return; ret == nil || ret.Status != "success" {
			t.Errorf("a parsed call returned %+v", ret)
		}
	}
	if got := int(slow.most.Load()); got > most {
		t.Errorf("%d calls were parsed at once, want at most %d", got, most)
	}
}
