package files

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toold/toold/internal/display"
	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/tools"
)

// patchOf puts sections between the first and the last line of a patch.
func patchOf(sections ...string) args {
	return args{"input": beginPatch + "\n" + strings.Join(sections, "\n") + "\n" + endPatch}
}

func TestAPatchChangesOnlyTheLinesItNames(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t)
	for _, tc := range []struct{ name, before, hunks, want string }{
		{"replaces", "one\ntwo\nthree\n", "@@\n one\n-two\n+TWO\n three", "one\nTWO\nthree\n"},
		{"the first hunk needs no @@", "one\ntwo\n", "-two\n+2", "one\n2\n"},
		{"several hunks", "a\nb\nc\nd\ne\n", "@@\n-a\n+A\n@@\n-e\n+E\n+f", "A\nb\nc\nd\nE\nf\n"},
		{"adds behind a line", "func a() {\n}\n\nfunc b() {\n}\n", "@@ func b() {\n+\tx()", "func a() {\n}\n\nfunc b() {\n\tx()\n}\n"},
		{"the place behind a line counts", "class A\n  def f\n    pass\nclass B\n  def f\n    pass\n", "@@ class B\n@@ def f\n-    pass\n+    go", "class A\n  def f\n    pass\nclass B\n  def f\n    go\n"},
		{"the line behind @@ stays", "x\nx\n", "@@ x\n-x\n+y", "x\ny\n"},
		{"the line behind @@ may be context", "x\na\nx\nb\n", "@@ a\n@@ x\n x\n-b\n+c", "x\na\nx\nc\n"},
		{"context is sought below it first", "x\na\nx\na\n", "@@ x\n x\n-a\n+b", "x\na\nx\nb\n"},
		{"the end of the file below @@", "x\nx\n", "@@ x\n-x\n+y\n*** End of File", "x\ny\n"},
		{"the end of the file", "x\ny\nx\n", "@@\n-x\n+z\n*** End of File", "x\ny\nz\n"},
		{"adds at the end", "x\n", "@@\n+y\n*** End of File", "x\ny\n"},
		{"no newline at the end stays so", "x\ny", "@@\n-y\n+z\n+zz", "x\nz\nzz"},
		{"an empty line is one of the file", "a\n\nb\n", "@@\n a\n\n-b\n+c", "a\n\nc\n"},
		{"CRLF stays", "a\r\nb\r\nc\r\n", "@@\n a\n-b\n+x\n+y\n c", "a\r\nx\r\ny\r\nc\r\n"},
		{"each line as the one beside it", "a\nb\r\nc\n", "@@\n-b\n+x\n c", "a\nx\nc\n"},
		{"an empty file", "", "@@\n+x", "x\n"},
		{"all lines go", "a\nb\n", "@@\n-a\n-b", ""},
		{"context keeps its bytes", "caf\xe9\nx\n", "@@\n-x\n+y", "caf\xe9\ny\n"},
	} {
		w.put("f", tc.before)
		got := w.run("apply_patch", patchOf("*** Update File: f", tc.hunks))
		if diff := cmp.Diff(tc.want, w.content("f")); diff != "" || got.IsError {
			t.Errorf("%s: %s %s", tc.name, got.Text, diff)
		}
		one := w.run("apply_patch", args{"operation": args{"type": "create_file", "path": "other", "diff": "+" + strings.ReplaceAll(strings.TrimSuffix(tc.before, "\n"), "\n", "\n+")}})
		if err := os.Remove(filepath.Join(w.root, "other")); err != nil || one.IsError {
			t.Errorf("%s: %v %s", tc.name, err, one.Text)
		}
		w.put("f", tc.before)
		if got := w.run("apply_patch", args{"operation": args{"type": "update_file", "path": "f", "diff": tc.hunks}}); got.IsError || w.content("f") != tc.want {
			t.Errorf("%s as an operation: %s %q", tc.name, got.Text, w.content("f"))
		}
	}
}

// Whatever ends its lines and begins it, a file keeps the bytes beside a change, and a new line ends as the one after it.
func TestTheBytesBesideAChangeStay(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t)
	ends := []string{"\n", "\r\n"}
	for _, bom := range []string{"", "\ufeff"} {
		for _, first := range ends {
			for _, second := range ends {
				for _, last := range append(ends[:2:2], "", "\r") {
					w.besideStays(bom, []string{"one" + first, "two" + second, "three" + last})
				}
			}
		}
	}
}

// Who copies a byte order mark from what was read means it.
func TestAHunkMayNameAByteOrderMark(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t)
	for hunks, want := range map[string]string{
		"@@\n-\ufeffone\n+1":               "1\ntwo\n",
		"@@\n-\ufeffone\n+\ufeff1":         "\ufeff1\ntwo\n",
		"@@\n \ufeffone\n-two":             "\ufeffone\n",
		"@@ \ufeffone\n-two\n+2":           "\ufeffone\n2\n",
		"@@ one\n-two\n+2":                 "\ufeffone\n2\n",
		"@@\n-one\n-two":                   "\ufeff",
		"@@\n-one\n+1\n@@\n-two\n+\ufeff2": "",
	} {
		w.put("f", "\ufeffone\ntwo\n")
		if want == "" {
			w.refused("apply_patch", patchOf("*** Update File: f", hunks), "does not occur", `\ufeffone`)
		} else if got := w.run("apply_patch", patchOf("*** Update File: f", hunks)); w.content("f") != want {
			t.Errorf("%q: %q %s", hunks, w.content("f"), got.Text)
		}
	}
	w.put("f", "\ufeff")
	w.run("str_replace_based_edit_tool", args{"command": "insert", "path": "f", "insert_line": 0, "insert_text": "x\n"})
	if got := w.content("f"); got != "\ufeffx\n" {
		t.Errorf("%q", got)
	}
}

func (w workspace) besideStays(bom string, lines []string) {
	w.t.Helper()
	content := bom + strings.Join(lines, "")
	check := func(tool string, a args, want string) {
		w.t.Helper()
		w.put("f", content)
		if got := w.run(tool, a); got.IsError || w.content("f") != want {
			w.t.Errorf("%q: %v: %q, want %q %s", content, a, w.content("f"), want, got.Text)
		}
	}
	update := func(hunk string) args { return patchOf("*** Update File: f", "@@", hunk) }
	insert := func(line int, text string) args {
		return args{"command": "insert", "path": "f", "insert_line": line, "insert_text": text}
	}
	isOpen := !strings.HasSuffix(content, "\n")
	var texts, ends []string // of an open last line, the end it would get
	for i, line := range lines {
		text, isEnded := strings.CutSuffix(line, "\n")
		if isEnded {
			text = strings.TrimSuffix(text, "\r")
			ends = append(ends, line[len(text):])
		} else {
			ends = append(ends, ends[i-1])
		}
		texts = append(texts, text)
	}
	for i, line := range lines {
		before, after := bom+strings.Join(lines[:i], ""), strings.Join(lines[i+1:], "")
		next := ends[min(i+1, len(lines)-1)]
		if isOpen && after == "" {
			next = ""
		}
		check("apply_patch", update("-"+texts[i]+"\n+new"), before+"new"+next+after)
		check("apply_patch", update("-"+texts[i]), before+after)
		check("apply_patch", update("+new\n "+texts[i]), before+"new"+ends[i]+line+after)
		check("str_replace_based_edit_tool", insert(i, "new\n"), before+"new"+ends[i]+line+after)
		word := strings.TrimSuffix(texts[i], "\r")
		check("edit_file", args{"file_path": "f", "old_string": word, "new_string": "new\nmore"}, before+"new"+ends[i]+"more"+strings.TrimPrefix(line, word)+after)
	}
	want, crlf, cr := content+"new"+ends[2], content+"new\r\n", content+"new\r\n"
	if isOpen {
		want = content + ends[2] + "new"
		crlf, cr = want, want+"\r"
	}
	check("apply_patch", update("+new\n*** End of File"), want)
	check("apply_patch", update("+new\r\n*** End of File"), cr)
	check("str_replace_based_edit_tool", insert(3, "new\n"), want)
	check("str_replace_based_edit_tool", insert(3, "new\r\n"), crlf)
}

func TestAPatchOfSeveralFilesIsOneChange(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t)
	w.put("edited", "one\ntwo\n")
	w.put("gone", "bye\n")
	w.put("tool.sh", "#!/bin/sh\necho old\n")
	must.Do(t, os.Chmod(filepath.Join(w.root, "tool.sh"), 0o750))
	inv := w.must("apply_patch", patchOf(
		"*** Add File: new/dir/file", "+hello", "+",
		"*** Update File: edited", "@@", "-two", "+2",
		"*** Update File: tool.sh", "*** Move to: bin/tool.sh", "@@", "-echo old", "+echo new",
		"*** Delete File: gone"))
	var effects []string
	for _, e := range inv.Effects() {
		effects = append(effects, e.Kind.String()+" "+strings.TrimPrefix(e.Canonical, w.root+"/"))
	}
	want := []string{"write new/dir/file", "read edited", "write edited", "read tool.sh", "write tool.sh", "write bin/tool.sh", "read gone", "write gone"}
	must.Match(t, want, effects)
	shown := inv.(tools.Previewed).Preview(t.Context())
	for _, part := range []string{"--- /dev/null\n+++ new/dir/file", "--- edited\n+++ edited", "--- tool.sh\n+++ bin/tool.sh", "--- gone\n+++ /dev/null"} {
		if strings.Count(shown.Diff, part) != 1 {
			t.Errorf("the preview %q does not show %q", shown.Diff, part)
		}
	}
	got := inv.Execute(t.Context(), tools.IO{})
	if got.IsError || got.File != nil || !strings.HasPrefix(got.Text, "Applied the patch to 4 files.\nA new/dir/file\nM edited\nR tool.sh -> bin/tool.sh\nD gone\n") || display.Visible(got.Diff) != shown.Diff {
		t.Errorf("%+v", got)
	}
	files := []tools.File{
		{Path: w.root + "/new/dir/file", Operation: "create", Bytes: 7, Lines: 2},
		{Path: w.root + "/edited", Operation: "edit", Bytes: 6, Lines: 2, Replacements: 1},
		{Path: w.root + "/bin/tool.sh", Operation: "move", From: w.root + "/tool.sh", Bytes: 19, Lines: 2, Replacements: 1},
		{Path: w.root + "/gone", Operation: "remove"},
	}
	must.Match(t, files, got.Files)
	if w.content("new/dir/file") != "hello\n\n" || w.content("edited") != "one\n2\n" || w.content("bin/tool.sh") != "#!/bin/sh\necho new\n" {
		t.Error("the files do not hold what the patch says")
	}
	if info, err := os.Stat(filepath.Join(w.root, "bin/tool.sh")); err != nil || info.Mode().Perm() != 0o750 {
		t.Errorf("the moved file: %v %v", info, err)
	}
	for _, name := range []string{"gone", "tool.sh"} {
		if _, err := os.Lstat(filepath.Join(w.root, name)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// tree lists the files of a workspace with their content.
func (w workspace) tree() map[string]string {
	w.t.Helper()
	all := map[string]string{}
	must.Do(w.t, filepath.WalkDir(w.root, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			data, err := os.ReadFile(path)
			all[strings.TrimPrefix(path, w.root+"/")] = string(data)
			return err
		}
		return err
	}))
	return all
}

func TestAPatchThatDoesNotApplyChangesNothing(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, func(o *Options) { o.MaxWrite = 10000 })
	w.put("a", "one\ntwo\nthree\ntwo\n")
	w.put("b", "\tindented\n")
	w.put("binary", "a\x00b\n")
	before := w.tree()
	first := "*** Update File: b\n@@\n-\tindented\n+\tchanged\n*** Add File: new\n+x"
	for _, tc := range []struct {
		section string
		words   []string
	}{
		{"*** Update File: a\n@@\n-two\n+2", []string{"hunk 1 of a", "line 9 of the patch", "line 2 and on line 4", "@@ "}},
		{"*** Update File: a\n@@\n-three\n+3\n@@\n-one\n+1", []string{"hunk 2 of a", "is on line 1, before", "order"}},
		{"*** Update File: a\n@@ one\n-one\n+1", []string{"is on line 1, before", `"@@"`}},
		{"*** Update File: a\n@@\n-thre\n+3", []string{"hunk 1 of a", "does not occur", "line 3", "three"}},
		{"*** Update File: a\n@@ four\n-two\n+2", []string{`after the line "four"`, "does not follow line 0"}},
		{"*** Update File: a\n@@\n+2", []string{"does not say where to add", "End of File"}},
		{"*** Update File: a\n@@\n-one\n+1\n*** End of File", []string{"not at the end"}},
		{"*** Update File: b2\n@@\n-x\n+y", []string{"b2", "no such file"}},
		{"*** Update File: binary\n@@\n-x\n+y", []string{"binary"}},
		{"*** Add File: a\n+x", []string{"a exists already"}},
		{"*** Delete File: none", []string{"none", "no such file"}},
		{"*** Delete File: .git/", []string{"names a directory"}},
		{"*** Update File: a\n*** Move to: binary", []string{"binary", "exists already"}},
		{"*** Update File: ./b\n@@\n-\tindented\n+x", []string{"names ./b", "twice"}},
		{"*** Add File: big\n+" + strings.Repeat("x", 10001), []string{"10000"}},
		{"*** Update File: a", []string{"has no changes"}},
		{"*** Update File: a\n@@ -1,3 +1,4 @@\n-one\n+1", []string{"line 9 of the patch", "line numbers are not supported"}},
		{"*** Update File: a\n@@\n one", []string{"only repeats lines"}},
		{"*** Update File: a\n@@\n-one\nsome words", []string{"line 11 of the patch", "some words", "neither"}},
		{"*** Add File: new2\nx", []string{"line 9 of the patch", `no \"+\" before it`}},
		{"*** Rename File: a", []string{"line 8 of the patch", "Rename File", "begins no file"}},
		{"*** Update File: \n@@\n-one", []string{"names no file"}},
	} {
		words := tc.words
		for i := range words {
			words[i] = strings.ReplaceAll(words[i], `\"`, `"`)
		}
		w.refused("apply_patch", patchOf(first, tc.section), words...)
		if diff := cmp.Diff(before, w.tree()); diff != "" {
			t.Fatalf("%q changed something: %s", tc.section, diff)
		}
	}
	w.refused("apply_patch", args{"input": "--- a\n+++ a\n@@ -1 +1 @@\n-one\n+1\n"}, "begins with", "unified diffs are not supported")
	w.refused("apply_patch", args{"input": beginPatch + "\n" + endPatch}, "changes no file")
	w.refused("apply_patch", args{"input": beginPatch + "\n*** Delete File: a"}, "ends with", endPatch)
	w.refused("apply_patch", args{}, "input", "required")
	w.refused("apply_patch", args{"operation": args{"type": "update_file", "path": "a", "diff": "-one\n+1\n*** Delete File: b"}}, "does not belong")
	w.refused("apply_patch", args{"operation": args{"type": "create_file", "path": "c"}}, "operation.diff", "required")
}

func TestALinkIsNeitherRemovedNorMoved(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t)
	w.put("real/f", "one\n")
	w.put("other", "x\n")
	for name, to := range map[string]string{"link": "real/f", "again": "link", "dangling": "real/none", "dir": "real"} {
		w.link(to, name)
	}
	before := w.tree()
	for section, to := range map[string]string{
		"*** Delete File: link":                                    "real/f",
		"*** Delete File: again":                                   "real/f",
		"*** Delete File: dangling":                                "real/none",
		"*** Update File: link\n*** Move to: new":                  "real/f",
		"*** Update File: again\n*** Move to: new\n@@\n-one\n+two": "real/f",
		"*** Update File: other\n*** Move to: dangling":            "real/none",
	} {
		w.refused("apply_patch", patchOf("*** Add File: first\n+x", section), "is a symbolic link to "+w.root+"/"+to, "bash")
		if diff := cmp.Diff(before, w.tree()); diff != "" {
			t.Fatalf("%q changed something: %s", section, diff)
		}
	}
	for _, name := range []string{"link", "again", "dangling"} {
		if _, err := os.Readlink(filepath.Join(w.root, name)); err != nil {
			t.Error(err)
		}
	}
	w.refused("apply_patch", args{"operation": args{"type": "delete_file", "path": "link"}}, "is a symbolic link to ")
	// What is only reached through a link is removed, and a link's target is edited.
	w.run("apply_patch", patchOf("*** Update File: link\n@@\n-one\n+two"))
	if got := w.content("real/f"); got != "two\n" {
		t.Errorf("%q", got)
	}
	got := w.run("apply_patch", patchOf("*** Delete File: dir/../real/f", "*** Update File: other\n*** Move to: dir/moved"))
	if diff := cmp.Diff(map[string]string{"real/moved": "x\n"}, w.tree()); diff != "" {
		t.Error(got.Text, diff)
	}
}

// The last of several files cannot be written: its directory takes no new names.
func TestAPatchThatFailsWhileItIsWrittenIsTakenBack(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t)
	w.put("a", "one\n")
	w.put("b", "bye\n")
	before := w.tree()
	// What is a file cannot be a directory.
	w.refused("apply_patch", patchOf("*** Update File: a\n@@\n-one\n+1\n*** Add File: new\n+x\n*** Add File: new/file\n+x"), "new/file", "put back: new, a")
	must.Match(t, before, w.tree())
	if os.Getuid() == 0 {
		t.Skip("permissions do not hold root back")
	}
	w.put("closed/c", "x\n")
	must.Do(t, os.Chmod(filepath.Join(w.root, "closed"), 0o555))
	t.Cleanup(func() { _ = os.Chmod(filepath.Join(w.root, "closed"), 0o755) })
	before = w.tree()
	for _, last := range []string{"*** Add File: closed/new\n+x", "*** Update File: closed/c\n@@\n-x\n+y", "*** Delete File: closed/c"} {
		w.refused("apply_patch", patchOf("*** Update File: a\n@@\n-one\n+1\n*** Add File: new\n+x\n*** Delete File: b", last), "closed", "put back: ", "new", "a")
		if diff := cmp.Diff(before, w.tree()); diff != "" {
			t.Errorf("%q left something: %s", last, diff)
		}
	}
}

func TestAPatchIsTakenBackOnlyWhereNobodyElseWrote(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t)
	w.put("a", "one\n")
	c := w.must("apply_patch", patchOf("*** Update File: a\n@@\n-one\n+1\n*** Add File: new\n+x")).(*change)
	states := must.Get(c.plan(t.Context()))(t)
	defer closeAll(states)
	a := application{o: c.o, states: states}
	must.Do(t, a.apply(t.Context()))
	w.put("a", "somebody else's\n")
	text := a.restore(t.Context(), errors.New("no room")).Error()
	if want := "no room; earlier writes of the call are reverted. put back: new; CHANGED AND NOT PUT BACK: a (it has changed since)"; text != want {
		t.Error(text)
	}
	must.Match(t, map[string]string{"a": "somebody else's\n"}, w.tree())
}

func TestAPatchThatWasShownIsNotAppliedToAnotherFile(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t)
	w.put("a", "one\n")
	w.put("b", "two\n")
	inv := w.must("apply_patch", patchOf("*** Update File: a\n@@\n-one\n+1\n*** Update File: b\n@@\n-two\n+2"))
	inv.(tools.Previewed).Preview(t.Context())
	w.put("b", "two\nmore\n")
	if got := inv.Execute(t.Context(), tools.IO{}); !got.IsError || !strings.Contains(got.Text, "changed since it was shown") || w.content("a") != "one\n" {
		t.Errorf("%+v", got)
	}
}

func TestMultiEditIsAListOfEdits(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t)
	w.put("f", "one two\n")
	got := w.run("multi_edit", args{"file_path": "f", "edits": []args{{"old_string": "one", "new_string": "1"}, {"old_string": "two", "new_string": "2"}}})
	if got.IsError || w.content("f") != "1 2\n" || got.File == nil || got.File.Replacements != 2 {
		t.Errorf("%+v", got)
	}
	w.refused("multi_edit", args{"file_path": "f", "edits": []args{}}, "edits", "empty")
	w.refused("multi_edit", args{"file_path": "f", "old_string": "1", "new_string": "2"}, "unknown")
	w.refused("multi_edit", args{"file_path": "f", "edits": []args{{"old_string": "1", "new_string": "x"}, {"old_string": "3", "new_string": "y"}}}, "edit 2 of 2")
	if w.content("f") != "1 2\n" {
		t.Errorf("a refused call changed the file: %q", w.content("f"))
	}
	for _, e := range w.must("multi_edit", args{"file_path": "f", "edits": []args{{"old_string": "1", "new_string": "x"}}}).Effects() {
		if e.Kind != policy.Read && e.Kind != policy.Write {
			t.Errorf("%v", e)
		}
	}
}

// FuzzPatch verifies that what a patch says it changes is all that changes, and that
// nothing else than an error comes of what is no patch.
func FuzzPatch(f *testing.F) {
	f.Add("one\ntwo\nthree\n", "*** Begin Patch\n*** Update File: f\n@@ one\n-two\n+2\n*** End of File\n*** End Patch")
	f.Add("a\r\nb", "*** Begin Patch\n*** Update File: f\n*** Move to: g\n@@\n a\n-b\n+\n@@\n+c\n*** End of File\n*** End Patch\n")
	f.Add("", "*** Begin Patch\n*** Add File: f\n+x\n*** Delete File: g\n*** End Patch")
	f.Add("x\nx\n", "*** Begin Patch\r\n*** Update File: f\r\n@@ x\r\n-x\r\n\r\n*** End Patch")
	f.Fuzz(func(t *testing.T, content, text string) {
		sections, err := parsePatch("input", text)
		if err != nil {
			return
		}
		for _, s := range sections {
			if s.path == "" || s.header != updateFile && len(s.hunks) > 0 {
				t.Fatalf("%+v", s)
			}
			m, err := applyHunks(t.Context(), s.hunks, target{asked: "f"}, []byte(content))
			if err != nil {
				continue
			}
			removed, added := 0, 0
			for _, h := range s.hunks {
				for _, line := range h.lines {
					removed += strings.Count(line[:1], "-")
					added += strings.Count(line[:1], "+")
				}
			}
			was, is := countLines([]byte(content)), countLines(m.after)
			if want := was - int64(removed) + int64(added); is != want && !strings.HasSuffix(strings.Split(content, "\n")[strings.Count(content, "\n")], "\r") && is != want-1 {
				t.Fatalf("%d lines became %d, not %d:\n%s", was, is, want, fmt.Sprintf("%q %q", content, m.after))
			}
		}
	})
}

func TestTheFilesOfAMovedPatchAreThoseThatItNames(t *testing.T) {
	t.Parallel()
	for _, end := range []string{"\n", "\r\n"} {
		patch := func(a, b, c, d string) string {
			return strings.Join([]string{beginPatch, addFile + a, "+*** Add File: x", updateFile + b, moveTo + c, "@@", " *** Move to: x", "+y", deleteFile + d, endPatch}, end)
		}
		moved := MovePatch(patch("  a", "b c \t", "\u00a0d", ""), func(path string) string { return "sub/" + path })
		if want := patch("sub/a", "sub/b c \t", "sub/d", ""); moved != want {
			t.Errorf("got %q, want %q", moved, want)
		}
	}
}

// Many put an empty line between the sections and hunks of a patch.
func TestEmptyLinesMayStandBetweenThePartsOfAPatch(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		sections []string
		want     string
	}{
		"before a section":        {[]string{"*** Update File: f", "@@", " a", "-b", "+B", "", "*** Update File: g", "@@", "-x", "+X"}, "a\nB\nc\nd\n"},
		"before a hunk":           {[]string{"*** Update File: f", "@@", " a", "-b", "+B", "", "@@", "-d", "+D"}, "a\nB\nc\nD\n"},
		"at the beginning":        {[]string{"", "*** Update File: f", "@@", "-b", "+B"}, "a\nB\nc\nd\n"},
		"behind a new file":       {[]string{"*** Add File: new", "+x", "", "*** Update File: f", "@@", "-b", "+B"}, "a\nB\nc\nd\n"},
		"behind a removed file":   {[]string{"*** Delete File: g", "", "*** Update File: f", "@@", "-b", "+B"}, "a\nB\nc\nd\n"},
		"at the end":              {[]string{"*** Update File: f", "@@", "-b", "+B", ""}, "a\nB\nc\nd\n"},
		"before the first hunk":   {[]string{"*** Update File: f", "", "@@", "-b", "+B"}, "a\nB\nc\nd\n"},
		"behind the end of file":  {[]string{"*** Update File: f", "@@", "-d", "+D", "*** End of File", "", "*** Delete File: g"}, "a\nb\nc\nD\n"},
		"before the end of file":  {[]string{"*** Update File: f", "@@", "-d", "+D", "", "*** End of File"}, "a\nb\nc\nD\n"},
		"several before a header": {[]string{"*** Update File: f", "@@", "-b", "+B", "", "", "*** Delete File: g"}, "a\nB\nc\nd\n"},
	} {
		w := newWorkspace(t)
		w.put("f", "a\nb\nc\nd\n")
		w.put("g", "x\n")
		if got := w.run("apply_patch", patchOf(tc.sections...)); got.IsError || w.content("f") != tc.want {
			t.Errorf("%s: %q %s", name, w.content("f"), got.Text)
		}
	}
	// An empty line of the file still tells two places apart.
	w := newWorkspace(t)
	w.put("f", "x\ny\nx\n\nz\n")
	if got := w.run("apply_patch", patchOf("*** Update File: f", "@@", "-x", "+X", "", "*** Add File: new", "+x", "+", "", "")); got.IsError || w.content("f") != "x\ny\nX\n\nz\n" || w.content("new") != "x\n\n" {
		t.Errorf("%q %s", w.content("f"), got.Text)
	}
}
