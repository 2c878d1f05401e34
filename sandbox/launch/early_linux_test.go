package launch

import (
	"slices"
	"testing"

	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/sandbox/internal/helper"
)

// The shell runs as soon as it is forked, and what it meets may be told by another
// thread of the helper before the start is.
func TestACommandMayMeetALimitBeforeItsStartIsTold(t *testing.T) {
	t.Parallel()
	p := &Process{}
	theirs := must.Get(p.connect())(t)
	defer p.control.Close()
	defer theirs.Close()
	for _, e := range []helper.Event{
		{Kind: helper.EventRefused, Text: "/run/a.sock"},
		{Kind: helper.EventLimit, Text: helper.LimitProcesses},
		{Kind: helper.EventStarted, ABI: 7},
	} {
		must.Get(theirs.Write(e.Encode()))(t)
	}
	event, err := p.firstWord()
	if err != nil || event.Kind != helper.EventStarted || event.ABI != 7 {
		t.Errorf("got %+v, %v", event, err)
	}
	if !slices.Equal(p.refused, []string{"/run/a.sock"}) || p.limit != helper.LimitProcesses {
		t.Errorf("it met %q and the limit %q", p.refused, p.limit)
	}
}
