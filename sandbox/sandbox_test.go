package sandbox

import "testing"

func TestModesHaveNamesAndTheStrictestIsZero(t *testing.T) {
	t.Parallel()
	for _, m := range []Mode{ReadOnly, WorkspaceWrite, FullAccess} {
		if got, err := ParseMode(m.String()); got != m || err != nil {
			t.Errorf("%v: got %v, %v", m, got, err)
		}
	}
	if m, err := ParseMode("none"); m != ReadOnly || err == nil {
		t.Errorf("got %v, %v", m, err)
	}
	if (Profile{}).Mode != ReadOnly {
		t.Error("the zero profile is not the strictest")
	}
}
