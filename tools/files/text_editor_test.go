package files

import (
	"strings"
	"testing"
)

func TestTheTextEditorDoesWhatTheOtherToolsDo(t *testing.T) {
	t.Parallel()
	const tool = "str_replace_based_edit_tool"
	w := newWorkspace(t)
	does := func(a args, file, content string, words ...string) {
		t.Helper()
		got := w.run(tool, a)
		for _, word := range words {
			if !strings.Contains(got.Text, word) {
				t.Errorf("%v: %q does not say %q", a, got.Text, word)
			}
		}
		if got.IsError || w.content(file) != content {
			t.Errorf("%v: %s; %s holds %q", a, got.Text, file, w.content(file))
		}
	}
	does(args{"command": "create", "path": "d/f", "file_text": "one\ntwo\nthree\n"}, "d/f", "one\ntwo\nthree\n")
	does(args{"command": "str_replace", "path": "d/f", "old_str": "two", "new_str": "2"}, "d/f", "one\n2\nthree\n", "1 replacement")
	does(args{"command": "str_replace", "path": "d/f", "old_str": "one\n"}, "d/f", "2\nthree\n")
	does(args{"command": "insert", "path": "d/f", "insert_line": 0, "insert_text": "0"}, "d/f", "0\n2\nthree\n")
	does(args{"command": "insert", "path": "d/f", "insert_line": 3, "insert_text": "4\n5\n"}, "d/f", "0\n2\nthree\n4\n5\n", "Inserted 2 lines")
	w.put("open", "a\r\nb")
	does(args{"command": "insert", "path": "open", "insert_line": 1, "insert_text": "x"}, "open", "a\r\nx\r\nb")
	does(args{"command": "insert", "path": "open", "insert_line": 3, "insert_text": "c\n"}, "open", "a\r\nx\r\nb\r\nc")
	does(args{"command": "view", "path": "d/f", "view_range": []int{2, 3}}, "d/f", "0\n2\nthree\n4\n5\n", "2\t2", "3\tthree")
	does(args{"command": "view", "path": "d/f", "view_range": []int{5, -1}}, "d/f", "0\n2\nthree\n4\n5\n", "5\t5")
	if got := w.must(tool, args{"command": "view", "path": "d"}).Execute(t.Context(), allowAll()); got.IsError || !strings.Contains(got.Text, "f\n") {
		t.Errorf("a directory: %+v", got)
	}
	before := w.tree()
	w.refused(tool, args{"command": "view", "path": "d/f", "view_range": []int{3, 2}}, "view_range", "first line")
	w.refused(tool, args{"command": "view", "path": "d/f", "file_text": "x"}, "file_text", "view does not take it")
	w.refused(tool, args{"command": "create", "path": "d/f"}, "file_text", "create needs it")
	w.refused(tool, args{"command": "insert", "path": "d/f", "insert_line": 99, "insert_text": "x"}, "5 lines", "after line 99")
	w.refused(tool, args{"command": "insert", "path": "d/none", "insert_line": 0, "insert_text": "x"}, "no such file")
	w.refused(tool, args{"command": "undo_edit", "path": "d/f"}, "undo_edit", "str_replace")
	w.refused(tool, args{"command": "str_replace", "path": "d/f", "old_str": "x", "new_str": "y"}, "does not occur")
	if after := w.tree(); len(after) != len(before) || after["d/f"] != before["d/f"] {
		t.Errorf("a refused call changed something: %v", after)
	}
}
