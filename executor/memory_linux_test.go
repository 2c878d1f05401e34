package executor

import "testing"

func TestTheKernelsKillsForWantOfMemoryAreCounted(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]uint64{"nr_free_pages 1\noom_kill 7\ndrop_pagecache 2\n": 7, "oom_kill 0\n": 0} {
		if n, ok := parseOOMKills(text); n != want || !ok {
			t.Errorf("%q: got %d, %v", text, n, ok)
		}
	}
	for _, text := range []string{"", "x_oom_kill 3\n", "oom_kill many\n"} {
		if n, ok := parseOOMKills(text); ok {
			t.Errorf("%q: got %d", text, n)
		}
	}
	var w memoryWatch
	if w.met() {
		t.Error("a command that ran for a moment met the end of the memory")
	}
	if w.begin(); !w.began {
		t.Skip("this kernel does not count them")
	}
	if w.before++; w.met() {
		t.Error("a count that has not grown is taken for a kill")
	}
}
