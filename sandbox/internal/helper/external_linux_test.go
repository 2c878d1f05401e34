package helper

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMountTableIsRead(t *testing.T) {
	t.Parallel()
	got, err := parseMountTable("22 1 8:1 / / ro,nosuid,nodev shared:1 - ext4 /dev/root rw\n" +
		`33 22 0:5 / /home/a\040b\134040\011c rw,relatime - tmpfs tmpfs rw,size=4k` + "\n")
	want := mountTable{22: {"/", false, 8<<20 | 1}, 33: {"/home/a b\\040\tc", true, 5}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(mountPoint{})); err != nil || diff != "" {
		t.Error(err, diff)
	}
	for _, bad := range []string{"\n", "x 1 8:1 / / rw - a b c\n", "1 2 3 4 5\n"} {
		if got, err := parseMountTable(bad); err == nil {
			t.Errorf("%q was read as %v", bad, got)
		}
	}
}

func FuzzMountTable(f *testing.F) {
	f.Add("22 1 8:1 / / ro,nosuid - ext4 /dev/root rw\n")
	f.Fuzz(func(t *testing.T, text string) {
		m, err := parseMountTable(text)
		if err != nil && len(m) > 0 {
			t.Errorf("a table of %d mounts with an error: %v", len(m), err)
		}
	})
}
