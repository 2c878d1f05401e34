package message

import (
	"strings"
	"testing"

	"github.com/toold/toold/internal/must"
)

func TestAWideningIsSaidInWords(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		w    Widening
		want []string
	}{
		{Widening{}, nil},
		{Widening{Network: "full"}, []string{"every host"}},
		{Widening{Network: "proxy", Write: "/data"}, []string{"whatever is in /data", "by name"}},
		{Widening{Profile: "workspace-write", Host: "pypi.org"}, []string{"the workspace", "pypi.org"}},
		{Widening{Profile: "danger-full-access"}, []string{"nothing confines it"}},
	} {
		lines := row.w.Lines()
		if len(lines) != len(row.want) {
			t.Fatalf("%+v is said in %q", row.w, lines)
		}
		for i, part := range row.want {
			if !strings.Contains(lines[i], part) {
				t.Errorf("%+v: %q does not say %q", row.w, lines[i], part)
			}
		}
	}
}

func TestARecordHoldsNoEmptyWidening(t *testing.T) {
	t.Parallel()
	if got := (Widening{}).Recorded(); got != nil {
		t.Errorf("got %+v", got)
	}
	want := Widening{Host: "h"}
	must.Match(t, &want, want.Recorded())
}
