package codex

import (
	"fmt"
	"testing"
)

func TestFewCallsAreRememberedAndNoNumberIsUsedTwice(t *testing.T) {
	t.Parallel()
	s := &session{calls: make(map[string]int)}
	if first, second := s.countStart("again"), s.countStart("again"); first != 1 || second != 2 {
		t.Errorf("the processes of one call have the numbers %d and %d", first, second)
	}
	last := 2
	for i := range 3 * maxCalls {
		s.countStart(fmt.Sprint(i))
		if i%(maxCalls/2) == 0 {
			n := s.countStart("again")
			if n <= last {
				t.Fatalf("the number %d came after %d", n, last)
			}
			last = n
		}
	}
	if n := len(s.calls); n > maxCalls {
		t.Errorf("%d calls are remembered", n)
	}
}
