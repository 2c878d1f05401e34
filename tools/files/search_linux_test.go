package files

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/tools"
)

// project is a workspace with a few files.
func project(t *testing.T, change ...func(*Options)) workspace {
	t.Helper()
	w := newWorkspace(t, change...)
	w.put("main.go", "package main\n\nfunc main() {\n\tkey := load()\n\tprintln(key)\n}\n")
	w.put("lib/load.go", "package lib\r\n\r\nfunc load() string { return \"key\" }\r\n")
	w.put("lib/load_test.go", "package lib\n")
	w.put("lib/notes.md", "a key, once more a key\n")
	w.put("secrets/token", "key=hunter2\n")
	w.put(".env", "key=hunter2\n")
	w.put("node_modules/x/index.js", "var key\n")
	w.put(".git/config", "key\n")
	w.put("image.png", "\x89PNG\x00key")
	return w
}

func (w workspace) search(tool string, a args, io tools.IO) string {
	w.t.Helper()
	got := w.must(tool, a).Execute(w.t.Context(), io)
	if got.Sandbox == nil || got.Sandbox.Profile == "" {
		w.t.Errorf("%s %v: no sandbox report", tool, a)
	}
	if got.IsError {
		return "error: " + got.Text
	}
	return got.Text
}

const leftOut = "[.git, .hg, .svn and node_modules were omitted; name one in path to search it]\n"

func TestGrepFindsLines(t *testing.T) {
	t.Parallel()
	w := project(t)
	for _, tc := range []struct {
		a    args
		want string
	}{
		{args{"pattern": `key\b`, "glob": "*.go"}, "lib/load.go:3:func load() string { return \"key\" }\nmain.go:4:\tkey := load()\nmain.go:5:\tprintln(key)\n" + leftOut},
		{args{"pattern": `\}$`, "path": "lib"}, "lib/load.go:3:func load() string { return \"key\" }\n"},
		{args{"pattern": "KEY", "path": "lib", "ignore_case": true, "mode": "files"}, "lib/load.go\nlib/notes.md\n"},
		{args{"pattern": "KEY", "path": "lib", "-i": true, "output_mode": "count"}, "lib/load.go:1\nlib/notes.md:1\n"},
		{args{"pattern": "load", "path": "main.go", "context": 1}, "main.go-3-func main() {\nmain.go:4:\tkey := load()\nmain.go-5-\tprintln(key)\n"},
		{args{"pattern": "main", "path": "main.go", "-A": 1}, "main.go:1:package main\nmain.go-2-\nmain.go:3:func main() {\nmain.go-4-\tkey := load()\n"},
		{args{"pattern": "package|printl", "path": "main.go", "-B": 1}, "main.go:1:package main\n--\nmain.go-4-\tkey := load()\nmain.go:5:\tprintln(key)\n"},
		{args{"pattern": "package", "glob": "lib/**/*_test.{go,py}"}, "lib/load_test.go:1:package lib\n"},
		{args{"pattern": "var", "path": "node_modules"}, "node_modules/x/index.js:1:var key\n"},
		{args{"pattern": "zzz", "path": w.root + "/lib"}, "No line matches.\n"},
		{args{"pattern": "key", "path": "image.png"}, "No line matches.\n[1 file not searched: binary]\n"},
		{args{"pattern": "package", "path": "lib", "limit": 1}, "lib/load.go:1:package lib\n[only the first 1 results; narrow path or the pattern, or raise limit (at most 10000)]\n"},
	} {
		searches(t, w, "grep", tc.a, tc.want)
	}
}

// searches checks what a search of a project returns.
func searches(t *testing.T, w workspace, tool string, a args, want string) {
	t.Helper()
	if diff := cmp.Diff(want, w.search(tool, a, allowAll())); diff != "" {
		t.Errorf("%v: %s", a, diff)
	}
}

func TestGlobListsPaths(t *testing.T) {
	t.Parallel()
	w := project(t)
	for _, tc := range []struct {
		a    args
		want string
	}{
		{args{"pattern": "**/*.go"}, "lib/load.go\nlib/load_test.go\nmain.go\n" + leftOut},
		{args{"pattern": "*.go"}, "main.go\n"},
		{args{"pattern": "*", "path": "lib/"}, "lib/load.go\nlib/load_test.go\nlib/notes.md\n"},
		{args{"pattern": "lib/load*"}, "lib/load.go\nlib/load_test.go\n"},
		{args{"pattern": "l?b"}, "lib/\n"},
		{args{"pattern": "**/[!l]*.{md,go}", "path": "."}, "lib/notes.md\nmain.go\n" + leftOut},
		{args{"pattern": "**/nothing.*", "path": "lib"}, "No path matches.\n"},
		{args{"pattern": "{**/*.go,**/*.md}"}, "lib/load.go\nlib/load_test.go\nlib/notes.md\nmain.go\n" + leftOut},
		{args{"pattern": "{**/load.{go,md},{main,none}.go}"}, "lib/load.go\nmain.go\n" + leftOut},
		{args{"pattern": "{lib/,}**/*.go"}, "lib/load.go\nlib/load_test.go\nmain.go\n" + leftOut},
		{args{"pattern": "{./lib,.}/*.md"}, "lib/notes.md\n"},
		{args{"pattern": "./lib//./*.md"}, "lib/notes.md\n"},
		{args{"pattern": w.root + "/lib/*.md"}, "lib/notes.md\n"},
		{args{"pattern": w.root + "/lib/*.md", "path": "lib"}, "lib/notes.md\n"},
		{args{"pattern": "*/"}, "lib/\nsecrets/\n" + leftOut},
		{args{"pattern": "{main.go,lib}/"}, "lib/\n"},
		{args{"pattern": "lib/*"}, "lib/load.go\nlib/load_test.go\nlib/notes.md\n"},
		{args{"pattern": "lib/**"}, "lib/load.go\nlib/load_test.go\nlib/notes.md\n"},
		{args{"pattern": "li{b,/b}/*.md{,~}"}, "lib/notes.md\n"},
		{args{"pattern": "[!]l]*.go"}, "main.go\n" + leftOut},
		{args{"pattern": "lib/[!l]*"}, "lib/notes.md\n"},
		{args{"pattern": "**.go"}, "lib/load.go\nlib/load_test.go\nmain.go\n" + leftOut},
		{args{"pattern": "lib[!x]load.go"}, "No path matches.\n" + leftOut},
		{args{"pattern": "**/*", "path": "lib", "limit": 2}, "lib/load.go\nlib/load_test.go\n[only the first 2 results; narrow path or the pattern, or raise limit (at most 10000)]\n"},
	} {
		searches(t, w, "glob", tc.a, tc.want)
	}
}

func TestASearchReadsOnlyWhatThePolicyAllows(t *testing.T) {
	t.Parallel()
	w := project(t)
	var judged []string
	io := tools.IO{Judge: func(e policy.Effect) policy.Decision {
		judged = append(judged, e.Canonical)
		switch strings.TrimPrefix(e.Canonical, w.root) {
		case "/secrets":
			return policy.Decision{Action: policy.Deny, Rule: "secrets"}
		case "/.env":
			return policy.Decision{Action: policy.Ask, Rule: "dotenv"}
		}
		if strings.Contains(e.Canonical, "/secrets/") {
			t.Errorf("the search came to %s", e.Canonical)
		}
		return policy.Decision{Action: policy.Allow}
	}}
	got := w.search("grep", args{"pattern": "hunter2"}, io)
	if want := "No line matches.\n[1 path not searched: rule dotenv]\n[1 path not searched: rule secrets]\n[1 file not searched: binary]\n" + leftOut; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if len(judged) < 7 {
		t.Errorf("only %q were judged", judged)
	}
	if got := w.search("glob", args{"pattern": "**"}, io); strings.Contains(got, "secrets/") || strings.Contains(got, ".env\n") {
		t.Errorf("listed: %s", got)
	}
	// Without a policy nothing is read.
	if got := w.search("grep", args{"pattern": "key"}, tools.IO{}); strings.Contains(got, ":") && !strings.HasPrefix(got, "No line matches.\n[") {
		t.Errorf("unjudged: %s", got)
	}
}

func TestASearchIsAReadOfItsRoot(t *testing.T) {
	t.Parallel()
	w := project(t)
	w.link("lib", "link")
	for _, tool := range []string{"grep", "glob"} {
		inv := w.must(tool, args{"pattern": "x", "path": "link"})
		want := []policy.Effect{{Kind: policy.Read, Path: w.root + "/link", Canonical: w.root + "/lib", Source: "link"}}
		if diff := cmp.Diff(want, inv.Effects()); diff != "" {
			t.Error(tool, diff)
		}
		if !inv.Traits().ReadOnly {
			t.Errorf("%s does not only read", tool)
		}
	}
}

func TestASearchFollowsNoLinkAndWaitsForNoPipe(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t)
	outside := t.TempDir()
	must.Do(t, os.WriteFile(outside+"/f", []byte("key\n"), 0o644))
	for name, to := range map[string]string{"out": outside, "file": outside + "/f", "loop": "."} {
		w.link(to, name)
	}
	must.Do(t, syscall.Mkfifo(w.root+"/pipe", 0o600))
	w.put("here", "key\n")
	want := "here:1:key\n[1 path not searched: not a regular file]\n[3 symbolic links not followed]\n"
	if got := w.search("grep", args{"pattern": "key"}, allowAll()); got != want {
		t.Errorf("got %q", got)
	}
}

func TestASearchSeesNothingHidden(t *testing.T) {
	t.Parallel()
	w := project(t, func(o *Options) { o.Profile.Hide = []string{o.Workspace + "/secrets", o.Workspace + "/.env"} })
	got := w.search("grep", args{"pattern": "hunter2"}, allowAll())
	if !strings.HasPrefix(got, "No line matches.\n[2 paths not searched: hidden by the sandbox]\n") {
		t.Errorf("got %q", got)
	}
	if got := w.search("grep", args{"pattern": "hunter2", "path": "secrets"}, allowAll()); !strings.HasPrefix(got, "error: ") || !strings.Contains(got, "sandbox.hide") {
		t.Errorf("got %q", got)
	}
}

// A directory that becomes a link after it was listed is not left through it.
func TestADirectoryThatBecomesALinkIsNotSearched(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t)
	outside := t.TempDir()
	must.Do(t, os.WriteFile(outside+"/f", []byte("key\n"), 0o644))
	w.put("a/f", "nothing\n")
	w.put("d/f", "nothing\n")
	io := tools.IO{Judge: func(e policy.Effect) policy.Decision {
		if e.Canonical == w.root+"/d" { // it is listed as a directory, and judged now
			if err := os.Rename(w.root+"/d", w.root+"/e"); err != nil {
				t.Error(err)
			}
			if err := os.Symlink(outside, w.root+"/d"); err != nil {
				t.Error(err)
			}
		}
		return policy.Decision{Action: policy.Allow}
	}}
	got := w.search("grep", args{"pattern": "key"}, io)
	if !strings.HasPrefix(got, "No line matches.\n[1 path not searched: cannot be read]\n") {
		t.Errorf("got %q", got)
	}
}

func TestSearchArgumentsAreChecked(t *testing.T) {
	t.Parallel()
	w := project(t)
	for _, tc := range []struct {
		tool  string
		a     args
		words []string
	}{
		{"grep", args{"pattern": "("}, []string{"pattern", "RE2"}},
		{"grep", args{"pattern": ""}, []string{"pattern", "empty"}},
		{"grep", args{"pattern": strings.Repeat("(|a){1000}", 90)}, []string{"pattern", "smaller numbers"}},
		{"grep", args{"pattern": `(\pL?){9,999}(\pL?){9,999}`, "ignore_case": true}, []string{"pattern", "smaller numbers"}},
		{"grep", args{"pattern": `[\pL\pN]+ .{0,1000}x{1,1000}`, "limit": 0}, []string{"limit"}},
		{"grep", args{"pattern": "x", "context": 51}, []string{"context", "0 to 50"}},
		{"grep", args{"pattern": "x", "limit": 0}, []string{"limit", "10000"}},
		{"grep", args{"pattern": "x", "mode": "all"}, []string{"mode", "content, files, count"}},
		{"grep", args{"pattern": "x", "path": "libb"}, []string{"no such file", "did you mean lib?"}},
		{"glob", args{"pattern": "/etc/*"}, []string{"pattern", "path"}},
		{"glob", args{"pattern": "../*"}, []string{"pattern", "path"}},
		{"glob", args{"pattern": "lib/../*"}, []string{"pattern", "path"}},
		{"glob", args{"pattern": "{lib,/etc}/*"}, []string{"pattern", "path"}},
		{"glob", args{"pattern": "{lib,..}/*"}, []string{"pattern", "path"}},
		{"grep", args{"pattern": "x", "glob": "!*.go"}, []string{"glob", "cannot leave files out"}},
		{"glob", args{"pattern": "[a"}, []string{"pattern", "expected names"}},
		{"glob", args{"pattern": strings.Repeat("{a,b}", 8) + strings.Repeat("*a", 100)}, []string{"pattern", "alternatives", "8000"}},
		{"glob", args{"pattern": "{main"}, []string{"pattern", "braces"}},
		{"glob", args{"pattern": "*", "path": "main.go"}, []string{"main.go", "not a directory"}},
	} {
		w.t = t
		inv, err := w.build(tc.tool, tc.a)
		text := fmt.Sprint(err)
		if err == nil {
			text = inv.Execute(t.Context(), allowAll()).Text
		}
		for _, word := range tc.words {
			if !strings.Contains(text, word) {
				t.Errorf("%s %v: %q does not say %q", tc.tool, tc.a, text, word)
			}
		}
	}
}

func TestASearchThatIsCancelledEnds(t *testing.T) {
	t.Parallel()
	w := project(t)
	ctx, cancel := context.WithCancel(t.Context())
	io := tools.IO{Judge: func(policy.Effect) policy.Decision {
		cancel()
		return policy.Decision{Action: policy.Allow}
	}}
	got := w.must("grep", args{"pattern": "key"}).Execute(ctx, io)
	if got.Failure != tools.Cancelled || !got.IsError {
		t.Errorf("%+v", got)
	}
}

// However many names there are, and however deep, a search keeps and looks at so many.
func TestTheNamesThatASearchKeepsAreBounded(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t)
	for i := range 5 {
		for j := range 10 {
			w.put(strings.Repeat("0/", i)+fmt.Sprint("f", j), "key\n")
		}
	}
	s := w.must("glob", args{"pattern": "**/f*"}).(search)
	bounded := &walk{o: s.o, io: allowAll(), root: s.root, want: s.names, most: 25}
	found := &findings{most: 100}
	must.Do(t, s.find(t.Context(), bounded, found))
	if bounded.entries != 25 || len(found.lines) > 25 {
		t.Errorf("%d names were listed, %d were found", bounded.entries, len(found.lines))
	}
	if notes := bounded.notes(); len(notes) != 1 || !strings.Contains(notes[0], "stopped after 25 names") {
		t.Errorf("notes %q", notes)
	}
	exact := &walk{o: s.o, io: allowAll(), root: s.root, want: s.names, most: 54} // 50 files, 4 directories
	must.Do(t, s.find(t.Context(), exact, found))
	if notes := exact.notes(); exact.entries != 54 || len(notes) > 0 {
		t.Errorf("of 54 names %d were listed, notes %q", exact.entries, notes)
	}
}

// "No line matches" is said of what was searched, and of nothing else.
func TestGrepSaysWhatItDidNotSearch(t *testing.T) {
	must.Long(t)
	t.Parallel()
	w := newWorkspace(t)
	w.put("crlf", "one\r\ntwo\r\n")
	w.put("open", "one\nlast")
	w.put("slash", `C:\root`+"\r\n")
	w.put("latin", "caf\xe9 au lait\n")
	w.put("bom", "\ufeffpackage x\n")
	w.put("greek", "ΣΊΣΥΦΟΣ\n")
	w.put("late", strings.Repeat("x", 9000)+"\x00key\n")
	w.put("long", strings.Repeat("x", longestPiece)+"key\n")
	w.put("limit", strings.Repeat("y\n", mostFile/2-2)+"key\n")
	w.put("large", strings.Repeat("y\n", mostFile/2)+"key\n")
	w.put("around", strings.Repeat(strings.Repeat("\x1b", 600)+"\n", 100)+"key\n"+strings.Repeat(strings.Repeat("\x1b", 600)+"\n", 100))
	for _, tc := range []struct {
		a    args
		want string
	}{
		{args{"pattern": "two$", "path": "crlf"}, "crlf:2:two\n"},
		{args{"pattern": `two\r$`, "path": "crlf"}, "crlf:2:two\n"},
		{args{"pattern": `:\\root$`, "path": "slash", "mode": "count"}, "slash:1\n"},
		{args{"pattern": `:\\root\r$`, "path": "slash", "mode": "count"}, "slash:1\n"},
		{args{"pattern": `:\\new`, "path": "slash"}, "No line matches.\n"},
		{args{"pattern": "^last$", "path": "open"}, "open:2:last\n"},
		{args{"pattern": "^caf. au", "path": "latin", "mode": "files"}, "latin\n"},
		{args{"pattern": "^package", "path": "bom", "mode": "files"}, "bom\n"},
		{args{"pattern": "σίσυφος", "path": "greek", "ignore_case": true}, "greek:1:ΣΊΣΥΦΟΣ\n"},
		{args{"pattern": "key", "path": "late", "mode": "count"}, "late:1\n"},
		{args{"pattern": "key$", "path": "long", "mode": "count"}, "long:1\n"},
		{args{"pattern": "key", "path": "limit", "mode": "count"}, "limit:1\n"},
		{args{"pattern": "key", "path": "large"}, "No line matches.\n[1 file not searched: larger than 10 MiB; use bash]\n"},
		{args{"pattern": `one\ntwo`, "path": "crlf"}, "No line matches. Each line is matched alone, without its end: a line end in the pattern matches nothing.\n"},
		{args{"pattern": "one", "glob": "*.txt,*.md"}, "No line matches: no file was searched, since glob fits none.\n"},
	} {
		searches(t, w, "grep", tc.a, tc.want)
	}
	if got := w.search("grep", args{"pattern": "key", "path": "around", "context": 50, "limit": 1}, allowAll()); !strings.HasPrefix(got, "around") {
		t.Errorf("of a match with much context there is %.200q", got)
	}
	// What would help is said, and nothing else.
	for limit, end := range map[int]string{10: "the pattern, or raise limit (at most 10000)]\n", 9000: "the pattern]\n", 10000: "the pattern]\n"} {
		if got := w.search("grep", args{"pattern": "^", "path": "limit", "limit": limit}, allowAll()); !strings.HasSuffix(got, end) {
			t.Errorf("%d: %q", limit, got[len(got)-100:])
		}
	}
}

func TestALongLineIsSearchedToItsEnd(t *testing.T) {
	must.Long(t)
	t.Parallel()
	w := newWorkspace(t)
	long := strings.Repeat("x", longestPiece-1) + "é" + strings.Repeat("x", 5000) // é is where a cut would be
	w.put("f", "\ufeff"+long+"y\r\nabc\n"+long+"key")
	for pattern, n := range map[string]int{
		`x$`: 0, `^x+$`: 0, `x\b$`: 0, `x\z`: 0, `xé?$`: 0, `[^xéykeabc]`: 0, `^x+é`: 2, `y$`: 2, `éx+y$`: 1, `key\b`: 1, `x\B`: 2, `^.{600,700}abc`: 0,
		`key`: 1, `xy|ab`: 2, `(?i)KEY`: 1, `none`: 0, `^key$`: 0, `^xx`: 2, `y\r$`: 1,
	} {
		want := fmt.Sprintf("f:%d\n", n)
		if n == 0 {
			want = "No line matches.\n"
		}
		searches(t, w, "grep", args{"pattern": pattern, "mode": "count"}, want)
	}
}

// A pattern that takes long ends within a line, not after it.
func TestASearchEndsWithinALongLine(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	h := hunt{match: regexp.MustCompile(`x$`)}
	if hit, err := h.matches(ctx, &walk{o: Options{Workspace: w.root}}, []byte(strings.Repeat("x", 3*longestPiece))); hit || !errors.Is(err, context.Canceled) {
		t.Errorf("%v %v", hit, err)
	}
}

func TestALongLineOfAMatchIsCut(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, func(o *Options) { o.Profile.Mode = sandbox.ReadOnly })
	w.put("f", "key"+strings.Repeat("é", 5000)+"\x1b[31m\n")
	want := "f:1:key" + strings.Repeat("é", 248) + "…\n"
	if got := w.search("grep", args{"pattern": "key"}, allowAll()); got != want {
		t.Errorf("got %q", got)
	}
	w.put("f", "key \x1b[31m\u202e\n")
	if got := w.search("grep", args{"pattern": "key"}, allowAll()); got != "f:1:key \\u{001b}[31m\\u{202e}\n" {
		t.Errorf("got %q", got)
	}
}

func FuzzPathPattern(f *testing.F) {
	f.Add("**/*.{go,md}", "a/b.go")
	f.Add("[!a-c]?\\*", "d/e")
	f.Add("a/**", "a/b/c")
	f.Add("{a/,{**/b,c}}**/*", "a/b/c")
	f.Fuzz(func(t *testing.T, text, path string) {
		p, err := newPathPattern("pattern", text, "/root", false)
		if err != nil || !p.matches(path, false) {
			return
		}
		// Whatever matches is found: no directory above it is left out.
		for i := range path {
			if path[i] == '/' && i > 0 && !p.mayHold(path[:i]) && !strings.Contains(path, "//") {
				t.Errorf("%q matches %q, and %q is not entered", text, path, path[:i])
			}
		}
	})
}
