package files

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/tools"
)

// A path may come with the size of a frame. It must cost nothing, and not come
// back whole.
func TestPathsThatCannotBeAreRefusedAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t)
	w.put("d/f", "x")
	for _, path := range []string{
		strings.Repeat("d/../", 1<<16) + "d/f",
		strings.Repeat("n", 1<<17),
		strings.Repeat("n/", 3000),
		"~/" + strings.Repeat("../", 2000),
		strings.Repeat("n", 256),
		"d/f\x00.txt",
		"d\nf",
		"d/f/",
		"d/f/.",
		"d/f/..",
		" ",
		"~",
		"~root/f",
		"$HOME/f",
		"%2e%2e/f",
		"file:///etc/passwd",
		"d\\f",
		"..", "../", "/..", ".", "./", "/", "//", "d", "d/",
		"/proc/self/fd/0", "/proc/self/mem", "/proc/self/cwd/f", "/dev/stdin", "/dev/fd/0", "/dev/tty", "/dev/null",
	} {
		for tool, a := range map[string]args{
			"read_file": {"file_path": path},
			"edit_file": {"file_path": path, "old_string": "x", "new_string": "y"},
		} {
			w.refused(tool, a)
			text, _ := json.Marshal(a)
			if inv, err := w.tools[tool].Build(text); err != nil && len(err.Error()) > 10_000 {
				t.Errorf("%s of %.40q is answered with %d bytes", tool, path, len(err.Error()))
			} else if err == nil && len(inv.Text()) > 50_000 {
				t.Errorf("%s of %.40q is shown with %d bytes", tool, path, len(inv.Text()))
			}
		}
	}
	if w.content("d/f") != "x" {
		t.Error("the file was changed")
	}
}

func TestAFileThatAppearedAfterJudgingIsNotRead(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t)
	inv := w.must("write_file", args{"file_path": "f", "content": "mine"})
	for _, e := range inv.Effects() {
		if e.Kind == policy.Read {
			t.Errorf("a file that is not there would be read: %+v", e)
		}
	}
	w.put("f", "somebody's secret")
	got := inv.Execute(t.Context(), tools.IO{})
	if !got.IsError || strings.Contains(got.Text, "secret") || w.content("f") != "somebody's secret" {
		t.Errorf("got %q, the file holds %q", got.Text, w.content("f"))
	}
}

func TestHugeFilesAreRefusedOrReadInParts(t *testing.T) {
	must.Long(t)
	w := newWorkspace(t) // not parallel: it counts what is allocated
	w.put("lines", strings.Repeat("0123456789abcde\n", 1<<16))
	w.put("line", "")
	for name, size := range map[string]int64{"lines": 1 << 30, "line": 500 << 20} { // the rest are holes
		must.Do(t, os.Truncate(filepath.Join(w.root, name), size))
	}
	before := allocated()
	for _, tc := range []struct {
		tool string
		a    args
		want string
	}{
		{"read_file", args{"file_path": "lines", "offset": 65536, "limit": 1}, "0123456789abcde\n[lines 65536-65536 of many more; continue with offset 65537]\n"},
		{"read_file", args{"file_path": "lines", "offset": 65538}, "it has 65537 lines"},
		{"read_file", args{"file_path": "lines"}, "[lines 1-2000 of many more; continue with offset 2001]\n"},
		{"read_file", args{"file_path": "lines", "limit": int64(1 << 40)}, "[lines 1-65536 of many more; continue with offset 65537]\n"},
		{"read_file", args{"file_path": "line", "offset": int64(math.MaxInt64), "limit": int64(math.MaxInt64)}, "it has 1 line"},
		{"read_file", args{"file_path": "line", "limit": 1, "encoding": "base64"}, "tail -c and head -c"},
		{"edit_file", args{"file_path": "lines", "old_string": "0", "new_string": "1"}, "more than the 16777216 bytes"},
		{"write_file", args{"file_path": "line", "content": "x"}, "more than the 16777216 bytes"},
	} {
		got := w.run(tc.tool, tc.a)
		if got.IsError == (tc.want[0] == '0' || tc.want[0] == '[') || !strings.Contains(got.Text, tc.want) {
			t.Errorf("%s %v: %.200q; want %q", tc.tool, tc.a, got.Text, tc.want)
		}
	}
	// The longest answer is 1 MiB, and is copied a few times.
	if grown := allocated() - before; grown > 32<<20 {
		t.Errorf("%d KiB were allocated", grown>>10)
	}
}

func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

// zeros never end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func TestTheSearchForALineEnds(t *testing.T) {
	t.Parallel()
	r := read{o: Options{MaxRead: 10}, file: target{asked: "f", path: "f", canonical: "f"}, offset: 2, limit: 1}
	lines := newLineReader(zeros{})
	lines.src.N = 1 << 20
	if _, err := r.excerpt(t.Context(), lines); err == nil || !strings.Contains(err.Error(), "use bash") {
		t.Errorf("got %v", err)
	}
	lines = newLineReader(strings.NewReader("1\n2\nxxx"))
	lines.src.N = 4
	if e, err := r.excerpt(t.Context(), lines); string(e.text) != "2\n" || err != nil || e.total >= 0 {
		t.Errorf("got %+v, %v", e, err)
	}
	// The length of a line that is not read to its end is unknown.
	for n, most := range map[int64]int64{6: 1000, 5000: 1000, 6000: 10_000} {
		lines = newLineReader(strings.NewReader("1\n" + strings.Repeat("x", 10_000)))
		lines.src.N = n
		r.o.MaxRead = most
		if e, err := r.excerpt(t.Context(), lines); err != nil || !strings.Contains(string(e.text), "x [… at least ") || !strings.Contains(string(e.text), "use bash") || e.total >= 0 {
			t.Errorf("%d: got %+v, %v", n, e, err)
		}
	}
}

func TestNumbersCountAmongWhatIsReturned(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, func(o *Options) { o.MaxRead = 1000 })
	w.put("f", strings.Repeat("\n", 900))
	got := w.run("read_file", args{"file_path": "f", "numbered": true, "limit": 900})
	if got.IsError || !strings.HasSuffix(got.Text, "   125\t\n[lines 1-125 of 900; continue with offset 126]\n") {
		t.Error(got.Text)
	}
}

func TestOneOfAThingIsSingular(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t)
	inv := w.must("write_file", args{"file_path": "f", "content": "x"})
	if got := inv.Text(); got != "Write 1 byte to f" {
		t.Error(got)
	}
	if got := inv.Execute(t.Context(), tools.IO{}).Text; !strings.HasPrefix(got, "Wrote 1 byte to f (created).\n") {
		t.Error(got)
	}
	w.refused("read_file", args{"file_path": "f", "offset": 2}, "it has 1 line")
	if got := w.must("read_file", args{"file_path": "f", "limit": 1}).Text(); got != "Read f, 1 line from line 1 on" {
		t.Error(got)
	}
}

func TestAPersonSeesWhatReplacesABinaryFile(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t)
	w.put("binary", "\x7fELF\x00\x01\x02")
	for _, tc := range []struct {
		tool string
		a    args
		want string
	}{
		{"write_file", args{"file_path": "binary", "content": "curl x | sh\n"}, "--- binary\n+++ binary\n\\ 7 binary bytes, replaced by\n+curl x | sh\n"},
		{"write_file", args{"file_path": "binary", "content": ""}, "--- binary\n+++ binary\n\\ 7 binary bytes, replaced by\n\\ nothing\n"},
		{"apply_patch", args{"patch": "*** Begin Patch\n*** Delete File: binary\n*** End Patch"}, "--- binary\n+++ /dev/null\n\\ 7 binary bytes, replaced by\n\\ nothing\n"},
	} {
		if got := w.must(tc.tool, tc.a).(tools.Previewed).Preview(t.Context()); got.Diff != tc.want {
			t.Errorf("%s %v is shown as\n%s\nwant\n%s", tc.tool, tc.a, got.Diff, tc.want)
		}
	}
	if got := w.run("write_file", args{"file_path": "binary", "content": "text\n"}); got.IsError || w.content("binary") != "text\n" {
		t.Errorf("got %q", got.Text)
	}
}

// What one frame can ask an edit to do is bounded before it is done.
func TestEditsThatExplodeAreRefused(t *testing.T) {
	w := newWorkspace(t, func(o *Options) { o.MaxWrite = 1 << 20 }) // not parallel: it counts what is allocated
	w.put("many", strings.Repeat("a\r\n", 1<<15))
	w.put("one", "a")
	big := strings.Repeat("b\n", 1<<18)
	before := allocated()
	all := func(file, old, new string) args {
		return args{"file_path": file, "old_string": old, "new_string": new, "replace_all": true}
	}
	w.refused("edit_file", all("many", "a", big), "32768 replacements would make", "1048576 bytes")
	w.refused("edit_file", all("many", "\n", strings.Repeat("\n", 20)), "1048576 bytes")
	w.refused("edit_file", args{"file_path": "many", "old_string": "a\n", "new_string": "b"}, "32768 times", "lines 1, 2, 3")
	w.refused("edit_file", args{"file_path": "one", "old_string": big, "new_string": "b"}, "does not occur")
	w.refused("edit_file", args{"file_path": "one", "old_string": "a", "new_string": big + big}, "larger than")
	if grown := allocated() - before; grown > 64<<20 {
		t.Errorf("%d MiB were allocated", grown>>20)
	}
	if got := w.content("one"); got != "a" {
		t.Errorf("%.20q", got)
	}
}
