//go:build linux

package conformance

// assign gives each matcher a frame of its own, of those that ok allows, and
// returns the frame of each. Where that is impossible, some are -1 and the
// number of matchers with a frame is the largest possible (bipartite matching by
// augmenting paths).
func assign(matchers, frames int, ok func(m, f int) bool) []int {
	frameOf := make([]int, matchers)
	matcherOf := make([]int, frames)
	for m := range frameOf {
		frameOf[m] = -1
	}
	for f := range matcherOf {
		matcherOf[f] = -1
	}
	var place func(m int, tried []bool) bool
	place = func(m int, tried []bool) bool {
		for f := range frames {
			if tried[f] || !ok(m, f) {
				continue
			}
			tried[f] = true
			if matcherOf[f] < 0 || place(matcherOf[f], tried) {
				frameOf[m], matcherOf[f] = f, m
				return true
			}
		}
		return false
	}
	for m := range matchers {
		place(m, make([]bool, frames))
	}
	return frameOf
}

// assignInOrder is assign where a later matcher must have a later frame.
func assignInOrder(matchers, frames int, ok func(m, f int) bool) []int {
	frameOf := make([]int, matchers)
	f := 0
	for m := range frameOf {
		frameOf[m] = -1
		for ; f < frames && frameOf[m] < 0; f++ {
			if ok(m, f) {
				frameOf[m] = f
			}
		}
	}
	return frameOf
}
