package files

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/sandbox/fileworker"
	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/argument"
)

// workspace is a folder with the three tools working in it.
type workspace struct {
	t     *testing.T
	root  string
	tools map[string]tools.Tool
}

func newWorkspace(t *testing.T, change ...func(*Options)) workspace {
	t.Helper()
	root := must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
	o := Options{Workspace: root, Home: root + "/home", Profile: sandbox.Profile{Mode: sandbox.WorkspaceWrite, Workspace: root}, Files: new(fileworker.Pool)}
	t.Cleanup(o.Files.Close)
	for _, c := range change {
		c(&o)
	}
	if _, _, err := o.Files.Open(t.Context(), o.Profile, root); errors.Is(err, sandbox.ErrUnavailable) {
		t.Skip(err)
	}
	w := workspace{t, root, map[string]tools.Tool{}}
	for _, tool := range append(New(o), NewLook(o)) {
		w.tools[tool.Definition().Name] = tool
	}
	return w
}

func (w workspace) put(name, content string) {
	w.t.Helper()
	path := filepath.Join(w.root, name)
	must.Do(w.t, os.MkdirAll(filepath.Dir(path), 0o755))
	must.Do(w.t, os.WriteFile(path, []byte(content), 0o644))
}

// link makes a symbolic link to a path.
func (w workspace) link(to, name string) {
	w.t.Helper()
	must.Do(w.t, os.Symlink(to, filepath.Join(w.root, name)))
}

func (w workspace) content(name string) string {
	w.t.Helper()
	data := must.Get(os.ReadFile(filepath.Join(w.root, name)))(w.t)
	return string(data)
}

type args map[string]any

func (w workspace) build(tool string, a args) (tools.Invocation, error) {
	w.t.Helper()
	text := must.Get(json.Marshal(a))(w.t)
	return w.tools[tool].Build(text)
}

func (w workspace) must(tool string, a args) tools.Invocation {
	w.t.Helper()
	inv := must.Get(w.build(tool, a))(w.t)
	return inv
}

func (w workspace) run(tool string, a args) tools.Result {
	w.t.Helper()
	result := w.must(tool, a).Execute(w.t.Context(), tools.IO{})
	if result.Sandbox == nil || result.Sandbox.Profile == "" {
		w.t.Errorf("%s %v: no sandbox report", tool, a)
	}
	return result
}

// refused verifies that a call fails with these words in its text.
func (w workspace) refused(tool string, a args, words ...string) {
	w.t.Helper()
	text := ""
	if inv, err := w.build(tool, a); err != nil {
		var fault *argument.Error
		if !errors.As(err, &fault) || fault.Field == "" {
			w.t.Errorf("%s %v: %v is no *ArgumentError with a field", tool, a, err)
		}
		text = err.Error()
	} else {
		result := inv.Execute(w.t.Context(), tools.IO{})
		if !result.IsError {
			w.t.Errorf("%s %v succeeded: %s", tool, a, result.Text)
		}
		text = result.Text
	}
	for _, word := range words {
		if !strings.Contains(text, word) {
			w.t.Errorf("%s %v: %q does not say %q", tool, a, text, word)
		}
	}
}

func TestReadReturnsExactlyTheContent(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t)
	content := "\ufeffone\r\ntwo\n\n\tthree é"
	w.put("a.txt", content)
	w.put("empty", "")
	w.put("home/h", "at home\n")
	w.put("~/x", "literal\n")
	for want, a := range map[string]args{
		content:                         {"file_path": "a.txt"},
		"The file exists and is empty.": {"file_path": "empty"},
		"at home\n":                     {"path": "~/h"},
		"literal\n":                     {"file_path": "./~/x"},
		"\ufeffone\r\n[lines 1-1 of 4; continue with offset 2]\n": {"file_path": "a.txt", "offset": 1, "limit": 1},
		"two\n\n[lines 2-3 of 4; continue with offset 4]\n":       {"file_path": w.root + "/a.txt", "offset": 2, "limit": 2},
		"\tthree é": {"file_path": "a.txt", "offset": 4, "limit": 100},
		"     2\ttwo\n     3\t\n[lines 2-3 of 4; continue with offset 4]\n": {"file_path": "a.txt", "offset": 2, "limit": 2, "numbered": true},
		"two\n\n\tthree é": {"file_path": "a.txt", "offset": 2, "limit": nil, "encoding": "utf-8", "description": "why"},
		"":                 {"file_path": "empty", "encoding": "base64"},
		base64.StdEncoding.EncodeToString([]byte("two\n")): {"file_path": "a.txt", "offset": 2, "limit": 1, "encoding": "base64"},
	} {
		if got := w.run("read_file", a); got.Text != want || got.IsError {
			t.Errorf("%v: got %q, want %q", a, got.Text, want)
		}
	}
}

func TestReadRefusesWithTheNextStep(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, func(o *Options) { o.MaxRead = 100; o.Profile.Hide = []string{o.Workspace + "/hidden"} })
	w.put("three", "1\n2\n3")
	w.put("binary", "a\x00b")
	w.put("latin1", "caf\xe9\n")
	w.put("utf16", "\xff\xfea\x00\n\x00")
	w.put("big", strings.Repeat("0123456789\n", 20))
	w.put("hidden/key", "secret")
	w.link("hidden/key", "innocent")
	for _, tc := range []struct {
		a     args
		words []string
	}{
		{args{"file_path": "none"}, []string{"no such file"}},
		{args{"file_path": "."}, []string{"directory"}},
		{args{"file_path": "hidden/.."}, []string{"directory"}},
		{args{"file_path": ""}, []string{"empty"}},
		{args{"file_path": "a\nb"}, []string{"control"}},
		{args{"file_path": "three/below"}, []string{"not a directory"}},
		{args{"file_path": "/dev/zero"}, []string{"cannot read /dev/zero"}},
		{args{"file_path": "hidden/key"}, []string{"sandbox.hide"}},
		{args{"file_path": "innocent"}, []string{"sandbox.hide"}},
		{args{"file_path": "three", "offset": 0}, []string{"offset", "counted from 1"}},
		{args{"file_path": "three", "offset": -1}, []string{"offset"}},
		{args{"file_path": "three", "limit": 0}, []string{"limit"}},
		{args{"file_path": "three", "offset": 4}, []string{"3 lines"}},
		{args{"file_path": "big", "offset": 21}, []string{"20 lines"}},
		{args{"file_path": "big", "limit": 15, "encoding": "base64"}, []string{"100 bytes", "offset", "limit"}},
		{args{"file_path": "binary"}, []string{"binary", "base64"}},
		{args{"file_path": "latin1"}, []string{"UTF-8", "base64"}},
		{args{"file_path": "utf16"}, []string{"UTF-16", "base64"}},
		{args{"file_path": "three", "encoding": "utf-16"}, []string{"utf-8, base64"}},
		{args{"file_path": "three", "encoding": "base64", "numbered": true}, []string{"numbered"}},
		{args{"file_path": "three", "ofset": 1}, []string{`did you mean "offset"`}},
	} {
		w.refused("read_file", tc.a, tc.words...)
	}
	if got := w.run("read_file", args{"file_path": "binary", "encoding": "base64"}); got.Text != "YQBi" {
		t.Errorf("binary as base64: %q", got.Text)
	}
}

func TestAPartOfAHugeFileIsReadWithoutLoadingIt(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t)
	w.put("huge", "first\nsecond\n")
	must.Do(t, os.Truncate(w.root+"/huge", 1<<30))
	if got := w.run("read_file", args{"file_path": "huge", "offset": 2, "limit": 1}); !strings.HasPrefix(got.Text, "second\n[lines 2-2 of many more;") {
		t.Errorf("got %.100q", got.Text)
	}
	w.refused("read_file", args{"file_path": "huge", "offset": 3}, "binary")
}

func TestWriteMakesAndReplacesFiles(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t)
	got := w.run("write_file", args{"file_path": "sub/new.txt", "content": "héllo\n"})
	want := "Wrote 7 bytes to sub/new.txt (created).\n\n--- /dev/null\n+++ sub/new.txt\n@@ -0,0 +1 @@\n+héllo\n"
	if diff := cmp.Diff(want, got.Text); diff != "" || got.IsError {
		t.Error(diff)
	}
	got = w.run("write_file", args{"path": "sub/new.txt", "file_text": "hello"})
	want = "--- sub/new.txt\n+++ sub/new.txt\n@@ -1 +1 @@\n-héllo\n+hello\n\\ No newline at end of file\n"
	if diff := cmp.Diff(want, got.Diff); diff != "" || !strings.HasPrefix(got.Text, "Wrote 5 bytes to sub/new.txt.\n") {
		t.Error(got.Text, diff)
	}
	if got := w.content("sub/new.txt"); got != "hello" {
		t.Errorf("file holds %q", got)
	}
	got = w.run("write_file", args{"file_path": "sub/new.txt", "content": ""})
	if w.content("sub/new.txt") != "" || !strings.Contains(got.Diff, "@@ -1 +0,0 @@") {
		t.Errorf("emptied: %s", got.Text)
	}
}

func TestWriteRefusesWhatTheProfileDoes(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, func(o *Options) { o.MaxWrite = 10 })
	outside := filepath.Join(filepath.Dir(w.root), "outside")
	w.link(outside, "link")
	w.put("file", "x")
	for _, tc := range []struct {
		a     args
		words []string
	}{
		{args{"file_path": "../outside", "content": "x"}, []string{"cannot write", "workspace"}},
		{args{"file_path": "link", "content": "x"}, []string{"cannot write", outside}},
		{args{"file_path": "/etc/toold-test", "content": "x"}, []string{"sandbox.write"}},
		{args{"file_path": ".", "content": "x"}, []string{"directory"}},
		{args{"file_path": "file/x", "content": "x"}, []string{"not a directory"}},
		{args{"file_path": "a", "content": "12345678901"}, []string{"11 bytes", "10"}},
		{args{"file_path": "a"}, []string{"content", "required"}},
		{args{"file_path": "a", "content": "x", "append": true}, []string{"append", "unknown"}},
	} {
		w.refused("write_file", tc.a, tc.words...)
	}
	readOnly := newWorkspace(t, func(o *Options) { o.Profile.Mode = sandbox.ReadOnly })
	readOnly.refused("write_file", args{"file_path": "a", "content": "x"}, "sandbox.profile", "read-only")
}

func TestALinkStaysAndItsTargetIsChanged(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t)
	w.put("real/target", "old\n")
	w.link("real/target", "link")
	w.run("write_file", args{"file_path": "link", "content": "new\n"})
	got := w.run("edit_file", args{"file_path": "link", "old_string": "new", "new_string": "newer"})
	if to, err := os.Readlink(w.root + "/link"); err != nil || to != "real/target" {
		t.Errorf("link: %q, %v", to, err)
	}
	if w.content("real/target") != "newer\n" || !strings.Contains(got.Text, w.root+"/real/target") {
		t.Errorf("target %q, text %s", w.content("real/target"), got.Text)
	}
}

func TestLookSaysWhatThingsAre(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t)
	w.put("d/f", "mine\n")
	w.put("locked", "mine")
	for link, to := range map[string]string{"to-f": "d/f", "to-d": "d", "to-nothing": "nothing"} {
		w.link(to, link)
	}
	must.Do(t, errors.Join(os.Chmod(filepath.Join(w.root, "locked"), 0), syscall.Mkfifo(filepath.Join(w.root, "pipe"), 0o600)))
	for name, want := range map[string]LookResult{
		"d/f":        {Path: "d/f", Kind: "file", Size: 5},
		"d":          {Path: "d", Kind: "directory"},
		"to-f":       {Path: "d/f", Kind: "file", Size: 5, Link: true},
		"to-d":       {Path: "d", Kind: "directory", Link: true},
		"to-d/f":     {Path: "d/f", Kind: "file", Size: 5},
		"to-nothing": {Missing: true},
		"d/no":       {Missing: true},
		"locked":     {Path: "locked", Kind: "file"},
		"pipe":       {Path: "pipe", Kind: "other"},
	} {
		result := w.run("look", args{"file_path": name, "op": "stat"})
		var got LookResult
		if err := json.Unmarshal([]byte(result.Text), &got); err != nil {
			t.Errorf("%s: %s", name, result.Text)
		}
		if got.Path != "" {
			got.Path, _ = filepath.Rel(w.root, got.Path)
		}
		if got.Kind == "directory" {
			got.Size = 0
		}
		if found := got.Modified > 0; found != (want.Size > 0 || want.Kind == "directory") {
			t.Errorf("%s: it was changed at %d", name, got.Modified)
		}
		got.Modified = 0
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestALinkThatAppearsAfterJudgingIsAnError(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t)
	w.put("d/f", "mine\n")
	w.put("other/f", "other\n")
	calls := []tools.Invocation{
		w.must("read_file", args{"file_path": "d/f"}),
		w.must("write_file", args{"file_path": "d/f", "content": "x"}),
		w.must("write_file", args{"file_path": "d/new", "content": "x"}),
		w.must("edit_file", args{"file_path": "d/f", "old_string": "o", "new_string": "x"}),
		w.must("look", args{"file_path": "d/f", "op": "stat"}),
		w.must("look", args{"file_path": "d", "op": "stat"}),
		w.must("look", args{"file_path": "d/f", "op": "read"}),
	}
	must.Do(t, os.Rename(w.root+"/d", w.root+"/d2"))
	w.link("other", "d")
	for _, inv := range calls {
		if got := inv.Execute(t.Context(), tools.IO{}); !got.IsError || !strings.Contains(got.Text, "symbolic link") {
			t.Errorf("%T: %s", inv, got.Text)
		}
	}
	if w.content("other/f") != "other\n" {
		t.Error("the other file was changed")
	}
}

func TestEffectsNameBothFormsOfThePath(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t)
	w.put("real/sub/f", "")
	w.link("real/sub", "link")
	effect := func(kind policy.Kind, path, canonical, source string) policy.Effect {
		return policy.Effect{Kind: kind, Path: w.root + path, Canonical: w.root + canonical, Source: source}
	}
	for _, tc := range []struct {
		tool string
		a    args
		want []policy.Effect
	}{
		{"read_file", args{"file_path": "link/f"}, []policy.Effect{effect(policy.Read, "/link/f", "/real/sub/f", "link/f")}},
		{"read_file", args{"file_path": "link/../x"}, []policy.Effect{effect(policy.Read, "/x", "/real/x", "link/../x")}},
		{"write_file", args{"file_path": "new", "content": ""}, []policy.Effect{effect(policy.Write, "/new", "/new", "new")}},
		{"write_file", args{"file_path": "link/f", "content": ""}, []policy.Effect{effect(policy.Write, "/link/f", "/real/sub/f", "link/f"), effect(policy.Read, "/link/f", "/real/sub/f", "link/f")}},
		{"edit_file", args{"file_path": "~/x", "old_string": "a", "new_string": "b"}, []policy.Effect{effect(policy.Read, "/home/x", "/home/x", "~/x"), effect(policy.Write, "/home/x", "/home/x", "~/x")}},
	} {
		if diff := cmp.Diff(tc.want, w.must(tc.tool, tc.a).Effects()); diff != "" {
			t.Errorf("%s %v: %s", tc.tool, tc.a, diff)
		}
	}
}

func TestWhatWasShownIsWhatIsChanged(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t)
	w.put("f", "one\ntwo\n")
	edit := args{"file_path": "f", "old_string": "two", "new_string": "TWO"}
	inv := w.must("edit_file", edit)
	preview := inv.(tools.Previewed).Preview(t.Context())
	result := inv.Execute(t.Context(), tools.IO{})
	if preview.Diff != result.Diff || preview.Diff != "--- f\n+++ f\n@@ -1,2 +1,2 @@\n one\n-two\n+TWO\n" {
		t.Errorf("shown %q, done %q", preview.Diff, result.Diff)
	}
	for name, between := range map[string]func(){
		"changed": func() { w.put("f", "two\nother\n") },
		"removed": func() { os.Remove(w.root + "/f") },
	} {
		w.put("f", "one\ntwo\n")
		inv := w.must("edit_file", edit)
		inv.(tools.Previewed).Preview(t.Context())
		between()
		if got := inv.Execute(t.Context(), tools.IO{}); !got.IsError || !strings.Contains(got.Text, "changed since it was shown") {
			t.Errorf("%s: %s", name, got.Text)
		}
	}
	inv = w.must("write_file", args{"file_path": "new", "content": "x"})
	if p := inv.(tools.Previewed).Preview(t.Context()); !strings.Contains(p.Diff, "+x") || !strings.Contains(p.Text, "Write 1 byte to new") {
		t.Errorf("%+v", p)
	}
	w.put("new", "appeared")
	if got := inv.Execute(t.Context(), tools.IO{}); !got.IsError || w.content("new") != "appeared" {
		t.Errorf("%s", got.Text)
	}
}

func TestEditsOfOneFileWaitForEachOther(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t)
	var lines strings.Builder
	const n = 20
	for i := range n {
		fmt.Fprintf(&lines, "line %d.\n", i)
	}
	w.put("f", lines.String())
	var all sync.WaitGroup
	for i := range n {
		inv := w.must("edit_file", args{"file_path": "f", "old_string": fmt.Sprintf("line %d.", i), "new_string": fmt.Sprintf("LINE %d.", i)})
		all.Go(func() {
			if got := inv.Execute(t.Context(), tools.IO{}); got.IsError {
				t.Error(got.Text)
			}
		})
	}
	all.Wait()
	if got, want := w.content("f"), strings.ToUpper(lines.String()); got != want {
		t.Error(cmp.Diff(want, got))
	}
}

func TestACancelledCallChangesNothing(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t)
	w.put("f", "one")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	got := w.must("write_file", args{"file_path": "f", "content": "two"}).Execute(ctx, tools.IO{})
	if got.Failure != tools.Cancelled || !got.IsError || w.content("f") != "one" {
		t.Errorf("%+v", got)
	}
}

func TestDefinitionsAreSchemasOfTheArguments(t *testing.T) {
	t.Parallel()
	for name, tool := range newWorkspace(t).tools {
		if tool.Definition().Hidden {
			continue
		}
		var schema struct {
			Type       string
			Properties map[string]any
			Required   []string
		}
		if err := json.Unmarshal(tool.Definition().Parameters, &schema); err != nil || schema.Type != "object" || !slices.Contains([]string{"file_path", "pattern", "input"}, schema.Required[0]) {
			t.Errorf("%s: %v %+v", name, err, schema)
		}
		if tool.Definition().Description == "" {
			t.Errorf("%s is not described", name)
		}
	}
}
