package helper

import (
	"os"
	"testing"

	"github.com/toold/toold/internal/must"
)

func TestProcessNameCannotForgeItsRow(t *testing.T) {
	t.Parallel()
	row := "42 (a) R 1 (b) S 7 42 41 34816 42 4194304 1 0 0 0 1 1 0 0 20 0 1 0 9876 1 1 18446744073709551615\n"
	got := must.Get(parseStat(42, row))(t)
	want := Proc{PID: 42, Parent: 7, Group: 42, Session: 41, Threads: 1, State: 'S', Start: 9876, Name: "a) R 1 (b"}
	must.Match(t, want, got)
}

func TestTableHoldsThisProcess(t *testing.T) {
	t.Parallel()
	for _, p := range Processes() {
		if p.PID == os.Getpid() {
			if p.Parent != os.Getppid() || p.Ended() {
				t.Errorf("got %+v", p)
			}
			return
		}
	}
	t.Error("the table lacks this process")
}

// The first thread of a program that computes often sleeps. The thread that asks here
// runs.
func TestAProcessIsBusyWithAnyOfItsThreads(t *testing.T) {
	t.Parallel()
	p, err := Process(os.Getpid())
	if err != nil || p.Threads < 2 {
		t.Fatalf("got %+v, %v", p, err)
	}
	p.State = 'S'
	if !p.Busy() {
		t.Error("a thread that runs was not seen")
	}
	p.Threads = 1
	if p.Busy() {
		t.Error("a process whose only thread sleeps is busy")
	}
}

func TestDescendantsAreAllGenerations(t *testing.T) {
	t.Parallel()
	all := []Proc{
		{PID: 1, State: 'S'},
		{PID: 5, Parent: 1, State: 'S'},
		{PID: 6, Parent: 5, State: 'Z'}, // ended, but what it left behind counts
		{PID: 3, Parent: 6, State: 'R'},
		{PID: 7, Parent: 1, State: 'S'},
		{PID: 8, Parent: 5, State: 'Z', Threads: 2}, // only its main thread has ended
	}
	got := descendants(all, 5)
	if len(got) != 2 || got[0].PID != 8 || got[1].PID != 3 {
		t.Errorf("got %v", got)
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add("1 (init) S 0 1 1 0 -1 4194560 1 1 1 1 1 1 1 1 20 0 1 0 5 1 1 1")
	f.Add("1 )(")
	f.Fuzz(func(t *testing.T, s string) {
		if p, err := parseStat(1, s); err == nil && p.State == 0 {
			t.Errorf("%q was read as %+v", s, p)
		}
	})
}
