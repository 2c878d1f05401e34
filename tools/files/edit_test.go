package files

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEditChangesOnlyTheReplacedBytes(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t)
	for _, tc := range []struct {
		name, before, old, new string
		all                    bool
		want                   string
	}{
		{name: "plain", before: "one\ntwo\nthree\n", old: "two", new: "TWO", want: "one\nTWO\nthree\n"},
		{name: "delete", before: "one\ntwo\n", old: "one\n", new: "", want: "two\n"},
		{name: "CRLF stays", before: "a\r\nb\r\nc\r\n", old: "b", new: "B", want: "a\r\nB\r\nc\r\n"},
		{name: "LF matches CRLF", before: "a\r\nb\r\nc\r\n", old: "a\nb\n", new: "x\ny\nz\n", want: "x\r\ny\r\nz\r\nc\r\n"},
		{name: "new lines take the file's ending", before: "a\r\nb", old: "b", new: "b\nc", want: "a\r\nb\r\nc"},
		{name: "mixed endings, each its own", before: "a\nb\r\na\r\n", old: "a", new: "x\ny", all: true, want: "x\ny\nb\r\nx\r\ny\r\n"},
		{name: "CR means bytes", before: "a\r\nb\r\n", old: "a\r\n", new: "a\n", want: "a\nb\r\n"},
		{name: "match ends before CRLF", before: "x\r\n\r\ny", old: "x\n", new: "z\n", want: "z\r\n\r\ny"},
		{name: "begins with a newline", before: "x\r\ny", old: "\ny", new: "\nz", want: "x\r\nz"},
		{name: "BOM stays", before: "\ufeffa = 1\r\n", old: "a = 1", new: "a = 2", want: "\ufeffa = 2\r\n"},
		{name: "old encoding stays", before: "caf\xe9 one\n", old: "one", new: "two", want: "caf\xe9 two\n"},
		{name: "all", before: "x x\nx", old: "x", new: "yy", all: true, want: "yy yy\nyy"},
		{name: "all, not overlapping", before: "aaaa", old: "aa", new: "b", all: true, want: "bb"},
		{name: "one is enough for all", before: "a aba b", old: "aba", new: "c", all: true, want: "a c b"},
	} {
		w.put("f", tc.before)
		got := w.run("edit_file", args{"file_path": "f", "old_string": tc.old, "new_string": tc.new, "replace_all": tc.all})
		if diff := cmp.Diff(tc.want, w.content("f")); diff != "" || got.IsError {
			t.Errorf("%s: %s %s", tc.name, got.Text, diff)
		}
		if !strings.HasPrefix(got.Text, "Edited f: ") || !strings.HasSuffix(got.Text, got.Diff) || got.Diff == "" {
			t.Errorf("%s: text %q", tc.name, got.Text)
		}
	}
}

func TestEditRefusesWhatIsNotClear(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, func(o *Options) { o.MaxWrite = 1000 })
	content := "func main() {\n\tprintln(1)\n}\nx\nx\naaa\n"
	w.put("f", content)
	w.put("crlf", "one\r\ntwo\r\n")
	w.put("binary", "a\x00b")
	w.put("big", strings.Repeat("y", 1001))
	edit := func(file, old, new string) args {
		return args{"file_path": file, "old_string": old, "new_string": new}
	}
	many := edit("f", "x", strings.Repeat("z", 600))
	many["replace_all"] = true
	for _, tc := range []struct {
		a     args
		words []string
	}{
		{edit("f", "x", "y"), []string{"2 times", "lines 4, 5", "replace_all"}},
		{edit("f", "aa", "y"), []string{"2 times"}}, // they overlap
		{edit("f", "x", "x"), []string{"new_string", "same"}},
		{edit("f", "", "x"), []string{"old_string", "write_file"}},
		{edit("f", "func main() {\n    println(1)\n}", "x"), []string{"lines 1 to 3", "white space", `\tprintln(1)`}},
		{edit("f", "PRINTLN(1)", "x"), []string{"line 2", "upper and lower case"}},
		{edit("f", "printn(1)", "x"), []string{"nearest is line 2", "println(1)"}},
		{edit("f", "nothing like it at all", "x"), []string{"read the file again"}},
		{edit("crlf", "one\r\r\ntwo", "y"), []string{"does not occur"}},
		{edit("binary", "a", "b"), []string{"binary"}},
		{edit("big", "y", "z"), []string{"1000 bytes", "bash"}},
		{edit("none", "a", "b"), []string{"no such file"}},
		{edit(".", "a", "b"), []string{"directory"}},
		{many, []string{"2 replacements", "1000 bytes"}},
	} {
		w.refused("edit_file", tc.a, tc.words...)
	}
	if got := w.content("f"); got != content {
		t.Errorf("changed to %q", got)
	}
}

// What is said of a file in which a text is missing is true.
func TestWhatIsSaidOfAMissingTextIsTrue(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t)
	lines := ""
	for i := range 30 {
		lines += fmt.Sprintf("line %d\n", i)
	}
	for _, tc := range []struct{ content, tool, old, says string }{
		{"", "edit_file", "x", "; the file is empty"},
		{"\n\n \n", "edit_file", "x", "; it has only white space; read the file again"},
		{strings.Repeat("\n", 1<<20) + "hello world\n", "edit_file", "hello  world", "; its first MiB has only white space; search the rest with grep"},
		{strings.Repeat("q\n", 1<<19) + "hello world\n", "edit_file", "hello  world", "; no line of its first MiB is similar; search the rest with grep"},
		{"hello worm\n" + strings.Repeat("q\n", 1<<19) + "hello world\n", "edit_file", "hello  world", "; the nearest of its first MiB is line 1: "},
		{"hello\n", "edit_file", "something else", "; no line of it is similar; read the file again"},
		{lines, "edit_file", strings.Replace(lines, "line 25", "row 25", 1), "; lines 1 to 20 contain its first 20 lines: "},
		{strings.ReplaceAll(lines, "\n", "\r\n"), "edit_file", strings.Replace(lines, "line 25", "row 25", 1), "; lines 1 to 20 contain its first 20 lines: "},
		{lines, "edit_file", "\t" + strings.Replace(lines, "line 25", "row 25", 1), "; lines 1 to 20 differ from its first 20 lines only in white space: "},
		{"a\nb\n", "edit_file", "A\nb", "; lines 1 to 2 differ from it only in upper and lower case: "},
		{"a\nb\n", "edit_file", "a\r\nb", "; lines 1 to 2 differ from it only in white space: "},
		{"a\n", "edit_file", "\na", "; parts of line 1 differ from it only in white space: "},
		{"caf\xe9 b\n", "edit_file", "caf\ufffd b", `; parts of line 1 differ from it only in bytes that are not UTF-8: "caf� b"; these cannot be in it: leave them out, or use bash`},
		{"x\n\xff\xfea\nb\n", "edit_file", "\ufffd\ufffda\nb", "; lines 2 to 3 differ from it only in bytes that are not UTF-8: "},
		{"\xff\ncaf\ufffd b\n", "edit_file", "caf\ufffd  b", "; parts of line 2 differ from it only in white space: "},
		{"caf\xe9 b\n", "edit_file", "caf\ufffd  b", "; parts of line 1 differ from it only in white space and bytes that are not UTF-8: "},
		{"xa\nby\n", "apply_patch", "a\nb", "; lines 1 to 2 contain it: "},
		{"one\ntwo\n", "apply_patch", "one\n*** End of File", "is not at the end of the file; line 1 contains it: "},
		{"foobar\n", "apply_patch", "foo", "; line 1 contains it: "},
		{"", "apply_patch", "foo", "; the file is empty"},
		{"\n", "apply_patch", "foo", "; it has only white space"},
		{"one\n", "apply_patch", "", "; no line of it is similar"},
	} {
		w.put("f", tc.content)
		a := args{"file_path": "f", "old_string": tc.old, "new_string": "new"}
		if tc.tool == "apply_patch" {
			a = patchOf("*** Update File: f", "@@", "-"+strings.ReplaceAll(tc.old, "\nb", "\n-b"))
		}
		w.refused(tc.tool, a, tc.says)
	}
	w.put("f", "a\nb\n")
	w.refused("apply_patch", patchOf("*** Update File: f", "@@ b", "@@ a", "+x"), `does not follow line 2; line 1 contains it: "a"`)
}

// FuzzEdit verifies against a slow and obvious model that nothing but the
// replaced bytes changes.
func TestSeveralEditsAreOneChange(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t)
	w.put("f", "one\ntwo\nthree\ntwo\n")
	edits := func(list ...args) args { return args{"file_path": "f", "edits": append([]args{}, list...)} }
	got := w.run("edit_file", edits(
		args{"old_string": "one", "new_string": "1"},
		args{"old_string": "two", "new_string": "2", "replace_all": true},
		args{"old_string": "1\n2", "new_string": "1 2"}, // what the others have made
	))
	if got.IsError || w.content("f") != "1 2\nthree\n2\n" || got.File.Replacements != 4 || strings.Count(got.Diff, "--- f") != 1 {
		t.Errorf("%+v; the file holds %q", got, w.content("f"))
	}
	before := w.content("f")
	w.refused("edit_file", edits(args{"old_string": "three", "new_string": "3"}, args{"old_string": "four", "new_string": "4"}), "edit 2 of 2", "does not occur")
	w.refused("edit_file", edits(), "empty")
	w.refused("edit_file", edits(args{"old_string": "a", "new_string": "a"}, args{"old_string": "b", "new_string": "c"}), "edit 1 of 2", "the same")
	w.refused("edit_file", edits(args{"old_string": "a"}), "edits[0].new_string", "required")
	w.refused("edit_file", edits(args{"old_string": "a", "new_string": "b", "replaceall": true}), "edits[0].replaceall", "replace_all")
	w.refused("edit_file", args{"file_path": "f", "edits": []string{"x"}}, "edits[0]", "expected a JSON object")
	w.refused("edit_file", args{"file_path": "f", "edits": []args{{"old_string": "2", "new_string": "x"}}, "replace_all": true}, "put all edits into edits")
	w.refused("edit_file", args{"file_path": "f", "new_string": "x"}, "old_string", "required")
	w.refused("edit_file", args{"file_path": "f", "old_string": "2", "new_string": "x", "expected_replacements": 3}, "occurs 2 times", "3 replacements expected")
	if w.content("f") != before {
		t.Errorf("a refused edit changed the file: %q", w.content("f"))
	}
	if got := w.run("edit_file", args{"file_path": "f", "old_string": "2", "new_string": "x", "expected_replacements": 2}); got.File.Replacements != 2 {
		t.Errorf("%+v", got)
	}
}

func FuzzEdit(f *testing.F) {
	f.Add("a\r\nb\nc", "b\n", "x\ny", true)
	f.Add("aaa", "a", "aa", true)
	f.Add("\r\n\r\n", "\n", "z", false)
	f.Add("a\rb\r\n", "\r", "", true)
	f.Fuzz(func(t *testing.T, content, old, new string, all bool) {
		if old == "" {
			t.Skip()
		}
		m, err := makeEdits(t.Context(), []edit{{OldString: old, NewString: new, ReplaceAll: all}}, target{}, []byte(content), 1<<20)
		if err != nil {
			return
		}
		fold := func(s string) string { return s }
		if !strings.Contains(old, "\r") {
			fold = func(s string) string { return strings.ReplaceAll(s, "\r\n", "\n") }
		}
		n := 1
		if all {
			n = -1
		}
		want := strings.Replace(fold(content), old, new, n)
		got := string(m.after)
		if got != want && strings.ReplaceAll(got, "\r\n", "\n") != strings.ReplaceAll(want, "\r\n", "\n") {
			t.Fatalf("%q: %q for %q gives %q, want %q but for line endings", content, new, old, got, want)
		}
		if !strings.Contains(content+new, "\r") && got != want {
			t.Fatalf("%q: %q for %q gives %q, want %q", content, new, old, got, want)
		}
		if !all { // what is before and after the one place is untouched
			head := commonPrefix(content, got)
			tail := commonSuffix(content[head:], got[head:])
			if changed := len(got) - head - tail; changed > len(new)+strings.Count(new, "\n") {
				t.Fatalf("%q: %q for %q gives %q: %d bytes changed", content, new, old, got, changed)
			}
		}
	})
}

func bigText(lines int) []byte {
	var b bytes.Buffer
	for i := range lines {
		fmt.Fprintf(&b, "line %d of a file that is edited, with some words in it\n", i)
	}
	return b.Bytes()
}
