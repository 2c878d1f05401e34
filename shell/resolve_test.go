package shell

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/policy"
)

func TestPathsAreResolvedAsTheKernelDoes(t *testing.T) {
	t.Parallel()
	ws, out := must.Workspace(t)
	r := hostResolver{}
	for path, want := range map[string]string{
		ws + "/a.txt":              ws + "/a.txt",
		ws + "/./src//deep/../x":   ws + "/src/x",
		ws + "/link":               out + "/sub",
		ws + "/link/..":            out,
		ws + "/link/../secret":     out + "/secret",
		ws + "/inside/main.go":     ws + "/src/main.go",
		ws + "/inside/../a.txt":    ws + "/a.txt",
		ws + "/gone/x/../y":        ws + "/gone/y",
		ws + "/gone/../../../../x": filepath.Clean(ws + "/../../../x"),
		ws + "/file":               out + "/secret",
		ws + "/loop":               "",
		ws + "/loop/x":             "",
		"/..":                      "/",
	} {
		if got := r.Canonical(path); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
	// The kernel agrees wherever it has an answer.
	for _, path := range []string{ws + "/link/../secret", ws + "/inside/../a.txt", ws + "/file", ws + "/inside/main.go"} {
		f := must.Get(os.Open(path))(t)
		real, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(int(f.Fd())))
		f.Close()
		if err == nil && real != r.Canonical(path) {
			t.Errorf("%s: the kernel opens %s", path, real)
		}
	}
}

func TestPatternsMatchWhatBashMatches(t *testing.T) {
	t.Parallel()
	ws, _ := must.Workspace(t)
	for pattern, want := range map[string]string{
		"*.txt": "a.txt b.txt", "*": "a.txt b.txt file inside link loop nested src", ".*": ".env .git", "src/*": "src/deep src/main.go",
		"*/main.go": "inside/main.go src/main.go", "[ab].txt": "a.txt b.txt", "gone*": "", "a.txt/*": "",
	} {
		names, complete := hostResolver{}.Glob(ws+"/"+pattern, maxGlob)
		got := strings.ReplaceAll(strings.Join(names, " "), ws+"/", "")
		if got != want || !complete {
			t.Errorf("%s: %q, want %q", pattern, got, want)
		}
	}
	if names, complete := (hostResolver{}).Glob(ws+"/*", 3); len(names) != 3 || complete {
		t.Errorf("a limit of 3: %v %v", names, complete)
	}
}

// A script can make the missing folder before it walks through it.
func TestALinkBehindAMissingFolderIsResolved(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must.Do(t, os.Symlink("/etc", filepath.Join(dir, "link")))
	if got := (hostResolver{}).Canonical(dir + "/missing/../link/passwd"); got != "/etc/passwd" {
		t.Errorf("resolved to %q, want /etc/passwd", got)
	}
}

// A program that does not follow the last link follows those before it.
func TestALinkBeforeDotsIsFollowed(t *testing.T) {
	t.Parallel()
	ws, out := must.Workspace(t)
	for script, want := range map[string]string{
		"rm link/../secret":         out + "/secret",
		"rm inside/../a.txt":        ws + "/a.txt",
		"rmdir link/../dir":         out + "/dir",
		"mv link/../secret new":     out + "/secret",
		"mv a.txt link/../new":      out + "/new",
		"ln -s a.txt link/../new":   out + "/new",
		"cd link; rm ../secret":     out + "/secret",
		"rm link":                   ws + "/link",
		"rm -r link/..":             out,
		"unlink link/./../secret":   out + "/secret",
		"rm " + ws + "/link/../dir": out + "/dir",
	} {
		writes := func(e policy.Effect) bool { return e.Kind == policy.Write && e.Canonical == want }
		if got := analysed(t, ws, script); !slices.ContainsFunc(got, writes) {
			t.Errorf("%s: %+v, want a write of %s", script, got, want)
		}
	}
}

// A link that is replaced is changed where it is, whatever it leads to.
func TestALinkThatIsReplacedIsWritten(t *testing.T) {
	t.Parallel()
	ws, _ := must.Workspace(t)
	must.Do(t, os.Symlink("../a.txt", filepath.Join(ws, "src/hop")))
	for script, want := range map[string]bool{
		"mv b.txt inside/hop": true, "ln -sf b.txt inside/hop": true, "sed -i s/a/b/ inside/../src/hop": true, "install b.txt inside/hop": true,
		"mv b.txt inside/main.go": false, "mv b.txt file": false,
	} {
		at := filepath.Join(ws, "src/hop")
		writes := func(e policy.Effect) bool { return e.Kind == policy.Write && (e.Path == at || e.Canonical == at) }
		if got := analysed(t, ws, script); slices.ContainsFunc(got, writes) != want {
			t.Errorf("%s: %+v, want a write of %s: %v", script, got, at, want)
		}
	}
}
