package sandbox

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestProfileTellsWhatCallsMaySeeAndChange(t *testing.T) {
	t.Parallel()
	p := Profile{Mode: WorkspaceWrite, Workspace: "/tmp/ws", Write: []string{"/srv/out"}, Hide: []string{"/home/u/.ssh", "/tmp/ws/secret"}}
	readOnly, full := p, p
	readOnly.Mode, full.Mode = ReadOnly, FullAccess
	for _, tc := range []struct {
		path        string
		profile     Profile
		read, write string // part of the refusal; empty = allowed
	}{
		{"/tmp/ws/a", p, "", ""},
		{"/tmp/ws", p, "", ""},
		{"/tmp/ws/.git/config", p, "", ""},
		{"/srv/out/a", p, "", ""},
		{"/srv/output", p, "", "sandbox.write"},
		{"/etc/passwd", p, "", "sandbox.write"},
		{"/", p, "", "sandbox.write"},
		{"/tmp/ws/secret/a", p, "sandbox.hide", "sandbox.hide"},
		{"/tmp/ws/secrets", p, "", ""},
		{"/home/u/.ssh", p, "sandbox.hide", "sandbox.hide"},
		{"/home/u/.sshx", p, "", "sandbox.write"},
		{"/tmp/wsx", p, "a private /tmp", "a private /tmp"},
		{"/tmp/ws/../other", p, "not canonical", "not canonical"},
		{"relative", p, "not canonical", "not canonical"},
		{"", p, "not canonical", "not canonical"},
		{"/proc/self/environ", p, "a private /proc", "a private /proc"},
		{"/dev/zero", p, "a private /dev", "a private /dev"},
		{"/tmp/ws/a", readOnly, "", "sandbox.profile is read-only"},
		{"/tmp/ws/secret", readOnly, "sandbox.hide", "sandbox.hide"},
		{"/etc/passwd", full, "", ""},
		{"/home/u/.ssh/id", full, "", ""},
		{"/etc/../etc", full, "not canonical", "not canonical"},
		{"/tmp/a", Profile{}, "a private /tmp", "a private /tmp"},
		{"/a", Profile{Mode: WorkspaceWrite}, "", "sandbox.write"},
		{"/a", Profile{Mode: WorkspaceWrite, Workspace: "/"}, "", ""},
	} {
		check := func(verb string, err error, want string) {
			if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
				t.Errorf("%s %s in %v: %v; want %q", verb, tc.path, tc.profile.Mode, err, want)
			}
		}
		check("read", tc.profile.CanRead(tc.path), tc.read)
		check("write", tc.profile.CanWrite(tc.path), tc.write)
	}
}

// tree makes files ("name": content), folders ("name/") and links
// ("name": "-> target") and returns the canonical root.
func tree(t *testing.T, entries map[string]string) string {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range entries {
		path := filepath.Join(root, name)
		os.MkdirAll(filepath.Dir(path), 0o755)
		var err error
		if target, ok := strings.CutPrefix(content, "-> "); ok {
			err = os.Symlink(target, path)
		} else if strings.HasSuffix(name, "/") {
			err = os.MkdirAll(path, 0o755)
		} else {
			err = os.WriteFile(path, []byte(content), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestResolveMeansWhatTheKernelMeans(t *testing.T) {
	t.Parallel()
	root := tree(t, map[string]string{
		"d/e/f": "x", "up": "-> d/e", "abs": "-> /etc", "chain": "-> up/f", "dangling": "-> nowhere/x",
		"a": "-> b", "b": "-> a", "dots": "-> ./d/../d/./e//",
	})
	for path, want := range map[string]string{
		"d/e/f":            "d/e/f",
		"up/../f":          "d/f", // not "f"
		"up/f":             "d/e/f",
		"chain":            "d/e/f",
		"dots/f":           "d/e/f",
		"./d//e/./f":       "d/e/f",
		"new/x/../y":       "new/y",
		"dangling":         "nowhere/x",
		"dangling/sub":     "nowhere/x/sub",
		"abs/passwd":       "/etc/passwd",
		"d/e/f/under-file": "d/e/f/under-file",
		"":                 "",
	} {
		got, err := Resolve(root + "/" + path)
		if !filepath.IsAbs(want) {
			want = filepath.Join(root, want)
		}
		if err != nil || got != want {
			t.Errorf("Resolve(%q) = %q, %v; want %q", path, got, err, want)
		}
	}
	for _, path := range []string{root + "/a", "relative", ""} {
		if got, err := Resolve(path); err == nil {
			t.Errorf("Resolve(%q) = %q; want an error", path, got)
		}
	}
	if got, err := Resolve("/../../etc"); got != "/etc" || err != nil {
		t.Errorf("above the root: %q, %v", got, err)
	}
}

func TestOnlyRegularFilesAreOpened(t *testing.T) {
	t.Parallel()
	root := tree(t, map[string]string{"f": "x", "d/g": "y", "link": "-> f", "folder-link": "-> d"})
	for name, want := range map[string]string{
		"d": "a directory", "link": "symbolic link", "folder-link/g": "symbolic link", "none": "no such file",
	} {
		f, err := OpenFile(filepath.Join(root, name))
		if err == nil {
			f.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %q", name, err, want)
		}
	}
	if _, err := OpenFile(filepath.Join(root, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
	if _, err := OpenFile(os.DevNull); err == nil || !strings.Contains(err.Error(), "a device") {
		t.Errorf("device: %v", err)
	}
}

func TestReplaceFileKeepsWhatIsNotContent(t *testing.T) {
	t.Parallel()
	root := tree(t, map[string]string{"script": "old"})
	path := filepath.Join(root, "script")
	if err := os.Chmod(path, 0o751); err != nil {
		t.Fatal(err)
	}
	old := open(t, path)
	if err := ReplaceFile(path, Replacement{Data: []byte("new content"), Old: old}); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode() != 0o751 || content(t, path) != "new content" {
		t.Errorf("%v %v %q", err, info.Mode(), content(t, path))
	}
	only(t, root, "script")
}

func TestReplaceFileMakesNewFilesAndNeverReplacesByAccident(t *testing.T) {
	t.Parallel()
	root := tree(t, map[string]string{"there": "old", "folder-link": "-> .", "dangling": "-> nowhere"})
	if err := ReplaceFile(filepath.Join(root, "a/b/c"), Replacement{Data: []byte("x"), Parents: true}); err != nil {
		t.Fatal(err)
	}
	if got := content(t, filepath.Join(root, "a/b/c")); got != "x" {
		t.Errorf("got %q", got)
	}
	for name, r := range map[string]Replacement{
		"there":               {Data: []byte("x")},                // appeared meanwhile
		"dangling":            {Data: []byte("x")},                // a link appeared
		"folder-link/new":     {Data: []byte("x"), Parents: true}, // in a folder that became a link
		"missing/new":         {Data: []byte("x")},                // no parents wanted
		"there/below-a-file/": {Data: []byte("x"), Parents: true},
	} {
		if err := ReplaceFile(filepath.Join(root, name), r); err == nil {
			t.Errorf("%s written", name)
		}
	}
	if got := content(t, filepath.Join(root, "there")); got != "old" {
		t.Errorf("got %q", got)
	}
	only(t, root, "a", "dangling", "folder-link", "there")
}

func TestReplaceFileRefusesAFileThatIsNotTheOneThatWasOpened(t *testing.T) {
	t.Parallel()
	root := tree(t, map[string]string{"f": "old", "other": "other"})
	path := filepath.Join(root, "f")
	old := open(t, path)
	if err := os.Rename(filepath.Join(root, "other"), path); err != nil {
		t.Fatal(err)
	}
	if err := ReplaceFile(path, Replacement{Data: []byte("new"), Old: old}); err == nil {
		t.Error("replaced")
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("other", path); err != nil {
		t.Fatal(err)
	}
	if err := ReplaceFile(path, Replacement{Data: []byte("new"), Old: old}); err == nil {
		t.Error("a link replaced")
	}
	only(t, root, "f")
}

func open(t *testing.T, path string) *os.File {
	t.Helper()
	f, err := OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func content(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// only verifies that nothing else, such as a temporary file, is in the folder.
func only(t *testing.T, folder string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("the folder holds %q, want %q", got, want)
	}
}
