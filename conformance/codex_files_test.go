//go:build linux

package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/toold/toold/client"
	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/internal/workspaces"
	"github.com/toold/toold/message"
)

// uri names a file of the workspace.
func (r codexRig) uri(name string) string { return "file://" + filepath.Join(r.site.workspace, name) }

// sandboxOf is the sandbox that Codex asks for in mode workspace-write, as it sends it.
func (r codexRig) sandboxOf(t testing.TB, root, network string) any {
	t.Helper()
	var box any
	text := `{"permissions":{"type":"managed","file_system":{"type":"restricted","entries":[
		{"path":{"type":"special","value":{"kind":"root"}},"access":"read"},
		{"path":{"type":"special","value":{"kind":"project_roots"}},"access":"write"},
		{"path":{"type":"special","value":{"kind":"slash_tmp"}},"access":"write"},
		{"path":{"type":"special","value":{"kind":"tmpdir"}},"access":"write"},
		{"path":{"type":"special","value":{"kind":"project_roots","subpath":".git"}},"access":"read","missing_path_behavior":"skip"},
		{"path":{"type":"special","value":{"kind":"project_roots","subpath":".codex"}},"access":"read","missing_path_behavior":"skip"}
	]},"network":"` + network + `"},"cwd":"` + root + `","workspaceRoots":["` + root + `"],"windowsSandboxLevel":"disabled","useLegacyLandlock":false}`
	if err := json.Unmarshal([]byte(text), &box); err != nil {
		t.Fatal(err)
	}
	return box
}

// sandboxWith is such a sandbox with one member more, in its permissions or in their file system.
func (r codexRig) sandboxWith(t testing.TB, part, name string, value any) any {
	t.Helper()
	box := r.sandboxOf(t, "file://"+r.site.workspace, "restricted")
	members := box.(map[string]any)["permissions"].(map[string]any)
	if part != "permissions" {
		members = members[part].(map[string]any)
	}
	members[name] = value
	return box
}

func TestCodexReadsAndWritesFiles(t *testing.T) {
	t.Parallel()
	r := newCodexRig(t)
	c, _ := r.connect(t, "")
	write := func(name, content string) codexFrame {
		return c.answer(c.ask("fs/writeFile", map[string]any{"path": r.uri(name), "dataBase64": []byte(content), "sandbox": nil}))
	}
	if f := write("sub/a b.txt", "hello\n"); f.Error != nil {
		t.Fatalf("%+v", *f.Error)
	}
	path := map[string]any{"path": r.uri("sub/a%20b.txt"), "sandbox": nil}
	var data struct{ DataBase64 []byte }
	if c.must("fs/readFile", path, &data); string(data.DataBase64) != "hello\n" {
		t.Errorf("it read %q", data.DataBase64)
	}
	var meta struct {
		IsFile, IsDirectory, IsSymlink bool
		Size                           int
	}
	if c.must("fs/getMetadata", path, &meta); !meta.IsFile || meta.IsDirectory || meta.IsSymlink || meta.Size != 6 {
		t.Errorf("it is %+v", meta)
	}
	var list struct {
		Entries []struct {
			FileName string
			IsFile   bool
		}
	}
	if c.must("fs/readDirectory", map[string]any{"path": r.uri("sub")}, &list); len(list.Entries) != 1 || list.Entries[0].FileName != "a b.txt" || !list.Entries[0].IsFile {
		t.Errorf("the directory has %+v", list)
	}
	var walk struct {
		Entries   []struct{ Path, Kind string }
		Truncated bool
	}
	options := map[string]any{"maxDepth": 2, "maxDirectories": 10, "maxEntries": 10, "followDirectorySymlinks": false}
	c.must("fs/walk", map[string]any{"path": "file://" + r.site.workspace, "options": options, "sandbox": nil}, &walk)
	if n := len(walk.Entries); n != 2 || walk.Entries[1].Path != r.uri("sub/a%20b.txt") || walk.Entries[1].Kind != "file" || walk.Truncated {
		t.Errorf("the walk found %+v", walk)
	}
	c.must("fs/walk", map[string]any{"path": "file:///", "options": map[string]any{"maxDepth": 1, "maxDirectories": 1, "maxEntries": 1000}, "sandbox": nil}, &walk)
	if !slices.ContainsFunc(walk.Entries, func(e struct{ Path, Kind string }) bool { return e.Path == "file:///etc" }) {
		t.Errorf("the walk of / found %+v", walk)
	}
	c.must("fs/open", map[string]any{"handleId": "h", "path": r.uri("sub/a%20b.txt"), "sandbox": nil}, nil)
	var block struct {
		Chunk []byte
		EOF   bool
	}
	if c.must("fs/readBlock", map[string]any{"handleId": "h", "offset": 0, "len": 3}, &block); string(block.Chunk) != "hel" || block.EOF {
		t.Errorf("the first block is %+v", block)
	}
	if c.must("fs/readBlock", map[string]any{"handleId": "h", "offset": 3, "len": 30}, &block); string(block.Chunk) != "lo\n" || !block.EOF {
		t.Errorf("the second block is %+v", block)
	}
	c.must("fs/close", map[string]any{"handleId": "h"}, nil)
	c.must("fs/copy", map[string]any{"sourcePath": r.uri("sub"), "destinationPath": r.uri("copy"), "recursive": true, "sandbox": nil}, nil)
	c.must("fs/remove", map[string]any{"path": r.uri("sub"), "recursive": true, "force": false, "sandbox": nil}, nil)
	for name, want := range map[string]int{"sub": -32004, "sub/none": -32004} {
		if f := c.answer(c.ask("fs/getMetadata", map[string]any{"path": r.uri(name)})); f.Error == nil || f.Error.Code != want {
			t.Errorf("%s was answered with %s %+v", name, f.Result, f.Error)
		}
	}
	if text, err := os.ReadFile(filepath.Join(r.site.workspace, "copy", "a b.txt")); string(text) != "hello\n" {
		t.Errorf("the copy is %q, %v", text, err)
	}
}

func TestCodexReachesNoFileThatThePolicyDenies(t *testing.T) {
	t.Parallel()
	r := newCodexRig(t)
	if err := os.WriteFile(filepath.Join(r.site.workspace, ".env"), []byte("SECRET"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, _ := r.connect(t, "")
	path := map[string]any{"path": r.uri(".env"), "sandbox": nil}
	if f := c.answer(c.ask("fs/readFile", path)); f.Error == nil || !strings.Contains(f.Error.Message, "secrets") {
		t.Errorf("fs/readFile was answered with %s %+v", f.Result, f.Error)
	}
	for method, params := range map[string]map[string]any{
		"fs/getMetadata": path,
		"fs/open":        {"handleId": "h", "path": r.uri(".env")},
		"fs/writeFile":   {"path": r.uri(".env"), "dataBase64": []byte("x")},
		"fs/remove":      {"path": r.uri(".env"), "force": true},
		"fs/copy":        {"sourcePath": r.uri(".env"), "destinationPath": r.uri("made"), "recursive": false},
	} {
		if f := c.answer(c.ask(method, params)); f.Error == nil || strings.Contains(string(f.Result), "SECRET") {
			t.Errorf("%s was answered with %s", method, f.Result)
		}
	}
	r.nothingMade()
	if text, err := os.ReadFile(filepath.Join(r.site.workspace, ".env")); string(text) != "SECRET" {
		t.Errorf("the file is %q, %v", text, err)
	}
}

// Reading a FIFO would take until the time limit.
func TestCodexCopiesNoFIFO(t *testing.T) {
	t.Parallel()
	r := newCodexRig(t)
	must.Do(t, syscall.Mkfifo(filepath.Join(r.site.workspace, "pipe"), 0o600))
	must.Do(t, os.Symlink("pipe", filepath.Join(r.site.workspace, "link")))
	c, _ := r.connect(t, "")
	for _, source := range []string{r.uri("pipe"), r.uri("link")} {
		f := c.answer(c.ask("fs/copy", map[string]any{"sourcePath": source, "destinationPath": r.uri("made"), "recursive": false}))
		if f.Error == nil || !strings.Contains(f.Error.Message, "no file and no directory") {
			t.Errorf("a copy of %s was answered with %s %+v", source, f.Result, f.Error)
		}
	}
	r.nothingMade()
}

// A block is what was asked for, and no more, when a person allows it as well.
func TestCodexReadsInBlocksWhatAPersonAllows(t *testing.T) {
	t.Parallel()
	r := newCodexRig(t)
	text := bytes.Repeat([]byte("0123456789\xff"), 30_000)
	if err := os.WriteFile(filepath.Join(r.site.workspace, "private.bin"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	asked := make(chan struct{}, 8)
	go func() {
		_ = r.approver.Approvals(t.Context(), client.ApprovalEvents{Requested: func(q message.ApprovalRequest) {
			asked <- struct{}{}
			if _, err := r.approver.Decide(t.Context(), client.Decision{ApprovalID: q.ID, Approve: true}); err != nil && t.Context().Err() == nil {
				t.Error(err)
			}
		}})
	}()
	c, _ := r.connect(t, "")
	c.must("fs/open", map[string]any{"handleId": "h", "path": r.uri("private.bin"), "sandbox": nil}, nil)
	var block struct {
		Chunk []byte
		EOF   bool
	}
	last := len(text) - 5
	for from, end := range map[int]int{0: 200_000, 3: 10, last: len(text)} {
		c.must("fs/readBlock", map[string]any{"handleId": "h", "offset": from, "len": end - from}, &block)
		if want := text[from:end]; !bytes.Equal(block.Chunk, want) || block.EOF != (from == last) {
			t.Errorf("the block from %d to %d has %d bytes, and eof is %t", from, end, len(block.Chunk), block.EOF)
		}
	}
	var whole struct{ DataBase64 []byte }
	if c.must("fs/readFile", map[string]any{"path": r.uri("private.bin"), "sandbox": nil}, &whole); !bytes.Equal(whole.DataBase64, text) {
		t.Errorf("the file has %d bytes", len(whole.DataBase64))
	}
	if len(asked) != 4 {
		t.Errorf("a person was asked %d times for four reads", len(asked))
	}
}

// JSON has no other bytes: with one put in its place, the call would be about another file.
func TestCodexReachesNoFileUnderAnotherName(t *testing.T) {
	t.Parallel()
	r := newCodexRig(t)
	other := filepath.Join(r.site.workspace, "odd\ufffd")
	if err := os.WriteFile(other, []byte("other"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, _ := r.connect(t, "")
	for method, more := range map[string]any{"fs/readFile": nil, "fs/writeFile": []byte("x"), "fs/remove": nil, "fs/getMetadata": nil} {
		params := map[string]any{"path": r.uri("odd%FF"), "sandbox": nil}
		if more != nil {
			params["dataBase64"] = more
		}
		if f := c.answer(c.ask(method, params)); f.Error == nil || !strings.Contains(f.Error.Message, "UTF-8") {
			t.Errorf("%s was answered with %s %+v", method, f.Result, f.Error)
		}
	}
	if text, err := os.ReadFile(other); string(text) != "other" {
		t.Errorf("the other file is %q, %v", text, err)
	}
}

// What Codex's own sandbox keeps from a call, toold keeps from it as well.
func TestTheSandboxOfCodexHoldsToo(t *testing.T) {
	t.Parallel()
	r := newCodexRig(t)
	for _, dir := range []string{".git", "part"} {
		if err := os.Mkdir(filepath.Join(r.site.workspace, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	kept := filepath.Join(r.site.workspace, "kept.txt")
	if err := os.WriteFile(kept, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c, _ := r.connect(t, "")
	all := r.sandboxOf(t, "file://"+r.site.workspace, "restricted")
	part := r.sandboxOf(t, r.uri("part"), "restricted")
	git := r.sandboxOf(t, "file://"+r.site.workspace, "restricted") // writable_roots has .git
	files := git.(map[string]any)["permissions"].(map[string]any)["file_system"].(map[string]any)
	files["entries"] = append(files["entries"].([]any), map[string]any{"path": map[string]any{"type": "path", "path": filepath.Join(r.site.workspace, ".git")}, "access": "write"})
	readOnly := map[string]any{"permissions": map[string]any{"type": "managed", "network": "restricted", "file_system": map[string]any{
		"type": "restricted", "entries": []any{map[string]any{"path": map[string]any{"type": "special", "value": map[string]any{"kind": "root"}}, "access": "read"}},
	}}}
	for name, test := range map[string]struct {
		script  string
		sandbox any
		made    bool
	}{
		"writes the workspace":              {"touch ok", all, true},
		"changes .git":                      {"touch .git/made", all, false},
		"changes .git, which Codex lets it": {"touch .git/ok", git, true},
		"writes beside a part":              {"rm kept.txt", part, false},
		"writes a part":                     {"touch part/ok", part, true},
		"writes, read-only":                 {"touch made2", readOnly, false},
	} {
		said, code := c.run(r.start(name, test.script, map[string]any{"sandbox": test.sandbox}))
		text := fmt.Sprint(said)
		toGit := name == "changes .git"
		if (code == 0) != test.made || toGit && !strings.Contains(text, "the agent's own sandbox forbids it") {
			t.Errorf("%s: exit code %d, %s", name, code, text)
		}
		if strings.Contains(text, "write_file") {
			t.Errorf("%s: exit code %d, %s", name, code, text)
		}
	}
	for name, test := range map[string]struct {
		path    string
		sandbox any
	}{
		"in .git":       {".git/made", all},
		"beside a part": {"made", part},
		"read-only":     {"made", readOnly},
	} {
		params := map[string]any{"path": r.uri(test.path), "dataBase64": []byte("x"), "sandbox": test.sandbox}
		if f := c.answer(c.ask("fs/writeFile", params)); f.Error == nil {
			t.Errorf("fs/writeFile %s was answered with %s", name, f.Result)
		}
	}
	if _, err := os.Stat(kept); err != nil {
		t.Error(err)
	}
	r.nothingMade()
}

// Codex looks for files of its own before each turn: that is one record and not twenty.
func TestReadsOfCodexAreRecordedOnceASeries(t *testing.T) {
	t.Parallel()
	r := newCodexRig(t)
	c, _ := r.connect(t, "")
	names := []string{".git", "AGENTS.md", ".agents/skills", "AGENTS.override.md"}
	for range 5 {
		for _, name := range names {
			c.answer(c.ask("fs/getMetadata", map[string]any{"path": r.uri(name), "sandbox": nil}))
		}
	}
	c.run(r.start("1", "true", nil)) // which ends the series
	agent := r.dial(client.Options{})
	var looks, listed int
	for {
		list, err := agent.ListMessages(t.Context(), message.ListMessages{Limit: 100, MessageTypes: []string{"tool_return_message"}})
		if err != nil {
			t.Fatal(err)
		}
		looks, listed = 0, 0
		for _, m := range list.Messages {
			if strings.Contains(string(m), `"look"`) {
				looks++
				listed += strings.Count(string(m), "AGENTS.override.md: ")
			}
		}
		if looks > 0 {
			break
		}
	}
	if looks > 4 || listed == 0 {
		t.Errorf("20 reads made %d records, which list one of them %d times", looks, listed)
	}
}

func TestCodexChangesFilesOfAnotherWorkspace(t *testing.T) {
	t.Parallel()
	r := codexRig{rig: newRig(t, nil)}
	second := t.TempDir()
	if _, err := workspaces.In(r.site.state).Add(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(second, "old"), []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, _ := r.connect(t, "")
	uri := "file://" + second
	c.must("fs/createDirectory", map[string]any{"path": uri + "/a/b", "recursive": true, "sandbox": nil}, nil)
	c.must("fs/copy", map[string]any{"sourcePath": uri + "/old", "destinationPath": uri + "/a/b/copy", "recursive": false, "sandbox": nil}, nil)
	c.must("fs/remove", map[string]any{"path": uri + "/old", "recursive": false, "force": false, "sandbox": nil}, nil)
	if text, err := os.ReadFile(filepath.Join(second, "a", "b", "copy")); err != nil || string(text) != "old" {
		t.Errorf("the copy has %q, %v", text, err)
	}
	if _, err := os.Stat(filepath.Join(second, "old")); err == nil {
		t.Error("what was removed is there")
	}
	list, err := r.dial(client.Options{}).ListMessages(t.Context(), message.ListMessages{Workspace: second, Limit: 10})
	if err != nil || len(list.Messages) < 3 {
		t.Errorf("the calls of the workspace are %s, %v", list.Messages, err)
	}
}
