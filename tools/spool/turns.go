package spool

import (
	"sort"

	"github.com/toold/toold/tools"
)

// mostTurns limits the turns in memory. A reader further behind gets one stream after the other.
const mostTurns = 4096

type turns struct {
	list   []turn   // oldest first; the last one is growing
	before [2]int64 // sizes of the streams before them
}

type turn struct {
	stream tools.Stream
	end    [2]int64 // sizes of the streams after it
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
		t.before = t.list[mostTurns/2-1].end
		t.list = t.list[:copy(t.list, t.list[mostTurns/2:])]
	}
	t.list = append(t.list, now)
}

// places maps a range of a stream to Combined, as begin and end for each turn.
func (t *turns) places(s tools.Stream, from, to int64) (parts [][2]int64) {
	i := sort.Search(len(t.list), func(i int) bool { return t.list[i].end[s] > from })
	before := t.before
	if i > 0 {
		before = t.list[i-1].end
	}
	for ; i < len(t.list) && before[s] < to; i++ {
		end := t.list[i].end
		if first, last := max(from, before[s]), min(to, end[s]); first < last {
			other := before[tools.Stderr-s]
			parts = append(parts, [2]int64{first + other, last + other})
		}
		before = end
	}
	return parts
}

func (t *turns) next(after [2]int64) (s tools.Stream, n int64) {
	i := sort.Search(len(t.list), func(i int) bool {
		end := t.list[i].end
		return end[tools.Stdout] > after[tools.Stdout] || end[tools.Stderr] > after[tools.Stderr]
	})
	if i == len(t.list) {
		return tools.Stdout, 0
	}
	now := t.list[i]
	for _, s := range []tools.Stream{tools.Stderr - now.stream, now.stream} { // the other one only if its turn was dropped
		if n := now.end[s] - after[s]; n > 0 {
			return s, n
		}
	}
	return tools.Stdout, 0
}
