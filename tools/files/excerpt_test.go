package files

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/internal/redact"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/tools"
)

// allowAll is a policy that allows everything but the paths given.
func allowAll(but ...string) tools.IO {
	return tools.IO{Judge: func(e policy.Effect) policy.Decision {
		for _, path := range but {
			if e.Canonical == path || strings.HasPrefix(e.Canonical, path+"/") {
				return policy.Decision{Action: policy.Deny, Rule: "secrets"}
			}
		}
		return policy.Decision{Action: policy.Allow}
	}}
}

func total(n int64) *int64 { return &n }

func TestAReadIsBoundedAndSaysWhatFollows(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t)
	var long strings.Builder
	for i := range 53211 {
		fmt.Fprintf(&long, "line %d\n", i+1)
	}
	w.put("long", long.String())
	got := w.run("read_file", args{"file_path": "long"})
	lines := strings.SplitAfter(got.Text, "\n")
	if len(lines) != 2002 || lines[1999] != "line 2000\n" || lines[2000] != "[lines 1-2000 of 53211; continue with offset 2001]\n" {
		t.Errorf("%d lines, the end is %q", len(lines), lines[max(0, len(lines)-3):])
	}
	want := &tools.File{Path: w.root + "/long", Operation: "read", Bytes: int64(strings.Index(got.Text, "[lines")), Lines: 2000, TotalLines: total(53211), NextOffset: 2001}
	must.Match(t, want, got.File)
	// Following the offsets gives the file, byte for byte.
	var whole strings.Builder
	for offset := int64(1); offset > 0; {
		part := w.run("read_file", args{"file_path": "long", "offset": offset})
		whole.WriteString(part.Text[:part.File.Bytes])
		offset = part.File.NextOffset
	}
	if whole.String() != long.String() {
		t.Errorf("the parts have %d bytes together, the file %d", whole.Len(), long.Len())
	}
	if got := w.run("read_file", args{"file_path": "long", "limit": 60000}); got.Text != long.String() {
		t.Errorf("with a limit: %d bytes", len(got.Text))
	}
}

// TestASecretIsMaskedOfWhichAPartIsRead, in what is recorded of the return.
func TestASecretIsMaskedOfWhichAPartIsRead(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t)
	token := "gh" + "p_" + strings.Repeat("aB3dE6", 6)
	check := func(tool string, a args) {
		got := w.run(tool, a)
		recorded := string(redact.Mask([]byte(got.Text)))
		for n := 0; n+6 <= len(token); n++ {
			if strings.Contains(recorded, token[n:n+6]) {
				t.Fatalf("%s %v: %q is left in %q", tool, a, token[n:n+6], recorded)
			}
		}
	}
	for cut := range len(token) {
		w.put("long", strings.Repeat("x", shownOfLine-cut-1)+" "+token+strings.Repeat(" y", usualLine))
		check("read_file", args{"file_path": "long"})
		w.put("long", strings.Repeat("x", shownOfHit-cut-1)+" "+token+strings.Repeat(" y", usualLine))
		check("grep", args{"pattern": "xxx", "path": "long", "output_mode": "content"})
		w.put("long", strings.Repeat("x", 399-cut)+" "+token+" y\n")
		check("edit_file", args{"file_path": "long", "old_string": strings.Repeat("x", 399-cut) + " z", "new_string": "y"})
	}
}

func TestAReadHasAtMost64KiB(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t)
	line := strings.Repeat("x", 999) + "\n"
	w.put("wide", strings.Repeat(line, 100))
	got := w.run("read_file", args{"file_path": "wide"})
	if want := strings.Repeat(line, 65) + "[lines 1-65 of 100; continue with offset 66]\n"; got.Text != want {
		t.Errorf("%d bytes, the end is %q", len(got.Text), got.Text[len(got.Text)-60:])
	}
	if got := w.run("read_file", args{"file_path": "wide", "offset": 66}); got.Text != strings.Repeat(line, 35) || got.File.NextOffset != 0 {
		t.Errorf("the rest: %d bytes, %+v", len(got.Text), got.File)
	}
}

func TestALongLineIsCutAndCanBeHad(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t)
	line := strings.Repeat("é", 50_000) + "\n"
	w.put("min.js", "first\n"+line+"last\n")
	got := w.run("read_file", args{"file_path": "min.js"})
	want := "first\n" + strings.Repeat("é", 1000) + " [… 98001 more bytes of line 2; offset 2 and limit 1 return all of it …]\nlast\n"
	must.Match(t, want, got.Text)
	if got := w.run("read_file", args{"file_path": "min.js", "offset": 2, "limit": 1}); got.Text != line+"[lines 2-2 of 3; continue with offset 3]\n" {
		t.Errorf("%d bytes", len(got.Text))
	}
	must.Do(t, os.WriteFile(w.root+"/huge.js", []byte(strings.Repeat("x", 3<<20)), 0o644))
	if got := w.run("read_file", args{"file_path": "huge.js", "limit": 1}); got.IsError || !strings.Contains(got.Text, "more bytes of line 1; for the rest use bash: sed -n 1p") || len(got.Text) > 3000 {
		t.Errorf("%.100q, %d bytes", got.Text, len(got.Text))
	}
}

func TestAReadThatFailsSaysWhatToReadInstead(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t)
	w.put("src/main.go", "package main\n")
	w.put("src/main_test.go", "package main\n")
	w.put("src/secret/key", "k")
	w.put("src/min.go", "package main\n")
	w.put("README.md", "hi\n")
	io := allowAll(w.root+"/src/secret", w.root+"/src/min.go")
	for _, tc := range []struct{ path, want, not string }{
		{"src", "it contains main.go, main_test.go. Read a file in it, or list it with glob: {\"path\": \"src\", \"pattern\": \"*\"}", "secret"},
		{"src/", "it contains main.go, main_test.go", "min.go"},
		{".", "it contains README.md, src/", ""},
		{"src/mian.go", "did you mean src/main.go? glob finds files by name: {\"pattern\": \"**/mian.go\"}", "min.go"},
		{"readme.md", "did you mean README.md?", ""},
		{"scr/main.go", "did you mean src?", ""},
		{"src/secrets", "no such file", "secret/"},
		{"zzz", "; glob finds files", "did you mean"},
	} {
		got := w.must("read_file", args{"file_path": tc.path}).Execute(t.Context(), io)
		if !got.IsError || !strings.Contains(got.Text, tc.want) || tc.not != "" && strings.Contains(got.Text, tc.not) {
			t.Errorf("%s: %q; want %q and not %q", tc.path, got.Text, tc.want, tc.not)
		}
	}
	if got := w.run("read_file", args{"file_path": "readme.md"}); strings.Contains(got.Text, "README") {
		t.Errorf("without a policy: %s", got.Text)
	}
}

func TestTheReturnDescribesTheFile(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t)
	w.put("f", "one\ntwo\none")
	path := w.root + "/f"
	for _, tc := range []struct {
		tool string
		a    args
		want tools.File
	}{
		{"read_file", args{"file_path": "f"}, tools.File{Path: path, Operation: "read", Bytes: 11, Lines: 3, TotalLines: total(3)}},
		{"read_file", args{"file_path": "f", "offset": 2, "limit": 1}, tools.File{Path: path, Operation: "read", Bytes: 4, Lines: 1, TotalLines: total(3), NextOffset: 3}},
		{"edit_file", args{"file_path": "f", "old_string": "one", "new_string": "1", "replace_all": true}, tools.File{Path: path, Operation: "edit", Bytes: 7, Lines: 3, Replacements: 2}},
		{"write_file", args{"file_path": "f", "content": "a\nb\n"}, tools.File{Path: path, Operation: "write", Bytes: 4, Lines: 2}},
		{"write_file", args{"file_path": "new", "content": ""}, tools.File{Path: w.root + "/new", Operation: "create"}},
		{"read_file", args{"file_path": "new"}, tools.File{Path: w.root + "/new", Operation: "read", TotalLines: total(0)}},
	} {
		if diff := cmp.Diff(&tc.want, w.run(tc.tool, tc.a).File); diff != "" {
			t.Errorf("%s %v: %s", tc.tool, tc.a, diff)
		}
	}
}
