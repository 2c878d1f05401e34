package policy

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The target of a symbolic link is meant from where the link lies.
func TestALinksTargetIsMeantFromTheLink(t *testing.T) {
	t.Parallel()
	for command, want := range map[string]string{
		"ln -s ../src build/link":         "build/../src build/link/../src",
		"ln -s ../../home/x /w/l":         "/w/../../home/x /w/l/../../home/x",
		"ln -sf a b":                      "./a b/a",
		"ln -s /etc/x l":                  "/etc/x",
		"ln -s -t dir ../a":               "./../a dir/../a",
		"ln --symbolic a b dir":           "./a dir/a ./b dir/b",
		"ln -s ../a build/":               "build/../a",
		"ln ../a b":                       "../a", // a hard link
		"ln -sr a b/c":                    "a",    // from here, as it says
		"ln -s a…  b":                     "./a… b/a…",
		"ln -s a $…":                      "…",
		"ln -s -T ../src build/link":      "build/../src build/link/../src",
		"/usr/bin/ln -s ../src build/lnk": "build/../src build/lnk/../src",
	} {
		var got []string
		for _, o := range describe(words(strings.ReplaceAll(command, "$…", "…"))).Operands {
			if text := o.Word.Text + map[bool]string{true: "…"}[o.Word.Dynamic]; o.Kind == Read {
				got = append(got, text)
			}
		}
		slices.Sort(got)
		sorted := strings.Fields(want)
		slices.Sort(sorted)
		if diff := cmp.Diff(sorted, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", command, diff)
		}
	}
}
