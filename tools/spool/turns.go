package spool

import (
	"sort"

	"github.com/toold/toold/tools"
)

// mostTurns bounds the turns in memory. A reader further behind gets one stream after the
// other.
const mostTurns = 4096

// turns records the order of the latest bytes of both streams.
type turns struct {
	list []turn // oldest first; the last one grows
}

type turn struct {
	stream tools.Stream
	end    [2]int64 // length of each stream after it
}

func (t *turns) add(s tools.Stream, n int64) {
	var now turn
	if last := len(t.list) - 1; last >= 0 {
		now = t.list[last]
		if now.stream == s {
			t.list = t.list[:last]
		}
	}
	now.stream = s
	now.end[s] += n
	if len(t.list) >= mostTurns {
		t.list = t.list[:copy(t.list, t.list[mostTurns/2:])]
	}
	t.list = append(t.list, now)
}

// next returns which stream continues after the first bytes of each, and for how many
// bytes; 0: there are no more yet.
func (t *turns) next(after [2]int64) (s tools.Stream, n int64) {
	i := sort.Search(len(t.list), func(i int) bool {
		end := t.list[i].end
		return end[tools.Stdout] > after[tools.Stdout] || end[tools.Stderr] > after[tools.Stderr]
	})
	if i == len(t.list) {
		return tools.Stdout, 0
	}
	now := t.list[i]
	for _, s := range []tools.Stream{tools.Stderr - now.stream, now.stream} { // the other one only if its turn is no longer in memory
		if n := now.end[s] - after[s]; n > 0 {
			return s, n
		}
	}
	return tools.Stdout, 0
}
