package journal

import (
	"fmt"
	"testing"
)

// Ids that were recorded before, by whichever process, are known, also when new ones are not
// looked up any more.
func TestKnownIdsAreKnownToTheFilter(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	before, _ := openFaulty(t, dir)
	lived(t, before, "before", 50)
	j, _ := openFaulty(t, dir)
	lived(t, j, "first", filterAfter)
	filter := j.write.table.filter
	if filter == nil {
		t.Fatal("there is no filter")
	}
	j.beside.Wait()
	if !filter.whole.Load() {
		t.Fatal("it is not whole")
	}
	lived(t, j, "second", 50)
	lived(t, before, "other", 50)
	for name, n := range map[string]int{"before": 50, "first": filterAfter, "second": 50, "other": 50} {
		for i := range n {
			if _, fresh, err := j.Begin(t.Context(), Call{Client: "agent", ID: fmt.Sprint(name, "-", i), Message: []byte(`{}`)}, Decision{}); err != nil || fresh {
				t.Fatalf("call %s-%d is new: %v, %v", name, i, fresh, err)
			}
			if j.Lacks("agent", "", fmt.Sprint(name, "-", i)) {
				t.Fatalf("call %s-%d is lacking", name, i)
			}
		}
	}
	if !j.Lacks("agent", "", "never") || before.Lacks("agent", "", "never") {
		t.Error("an id is known, or not looked up without a filter")
	}
	passed := 0
	for i := range 10_000 {
		if !filter.lacks(identity{"agent", "", fmt.Sprint("new-", i)}) {
			passed++
		}
	}
	if passed > 10 {
		t.Errorf("%d of 10000 new ids are looked up", passed)
	}
}
