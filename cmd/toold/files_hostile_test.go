package main

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/zap"

	"github.com/toold/toold/client"
	"github.com/toold/toold/internal/config"
	"github.com/toold/toold/internal/daemon"
	"github.com/toold/toold/internal/must"
)

// hostileSite is a daemon whose policy allows everything, so that only the tools
// and the sandbox's rules stand between an attacker and these files:
//
//	outside/key     beside the workspace
//	ws/hidden/key   in the workspace, hidden
//	ws/…            links that lead to both, and files to read and change
type hostileSite struct {
	t    *testing.T
	base string
	c    *client.Client
}

func newHostileSite(t *testing.T) hostileSite {
	needsSandbox(t)
	base, err := os.MkdirTemp("/tmp", "toold-test-") // wherever temporary files are: calls have a /tmp of their own
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(base) })
	ws := filepath.Join(base, "ws")
	for name, text := range map[string]string{
		"outside/key": "SEKRET", "ws/hidden/key": "SEKRET", "ws/d/f": "inside", "ws/f": "one\ntwo\ntwo\n",
		"ws/crlf": "a\r\nb\r\n", "ws/bom": "\ufeffa\n", "ws/open": "no newline", "ws/bin": "a\x00b", "ws/latin": "caf\xe9",
		"policy.yaml": "version: 1\ndefaults: {bash: allow, read: allow, write: allow, net: allow, unanalysable: ask}\n",
		"config.yaml": "version: 1\npolicy: policy.yaml\nsandbox:\n  hide: [ws/hidden]\n",
	} {
		path := filepath.Join(base, name)
		must.Do(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must.Do(t, os.WriteFile(path, []byte(text), 0o644))
	}
	for name, to := range map[string]string{
		"out": "../outside", "out-file": "../outside/key", "in": "hidden", "loop": "loop", "deep": "d/../../outside/key",
		"new-out": "../outside/new", "root": "/", "self": ".", "fd": "/proc/self/fd", "input": "/dev/stdin", "sneaky": "hidden/../hidden/key",
	} {
		must.Do(t, os.Symlink(to, filepath.Join(ws, name)))
	}
	cfg := must.Get(config.Load(config.Options{
		Path: filepath.Join(base, "config.yaml"), Dir: base, Workspace: ws, StateDir: filepath.Join(base, "state"), Listen: "127.0.0.1:0",
		Getenv: func(string) string { return "" },
	}))(t)
	secrets := daemon.FreshTokens(cfg)
	d := must.Get(daemon.New(t.Context(), daemon.Options{Config: cfg, Tokens: secrets, Log: zap.NewNop()}))(t)
	served := make(chan error, 1)
	// Ends when the test's context does; Cleanup waits.
	go func() { served <- d.Serve(t.Context()) }()
	t.Cleanup(func() { <-served })
	c := must.Get(client.Dial(t.Context(), client.Options{URL: d.URL(), Token: secrets[0].Secret}))(t)
	t.Cleanup(func() { c.Close() })
	return hostileSite{t, base, c}
}

// outside is everything below the base that no call may change.
func (s hostileSite) outside() string {
	var b strings.Builder
	must.Do(s.t, filepath.WalkDir(s.base, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == filepath.Join(s.base, "state") || path == filepath.Join(s.base, "state.head") {
			return fs.SkipDir
		}
		rest, _ := filepath.Rel(s.base, path)
		if strings.HasPrefix(rest, "ws/") && !strings.HasPrefix(rest, "ws/hidden") {
			return nil
		}
		text, _ := os.ReadFile(path)
		info, err := d.Info()
		fmt.Fprintf(&b, "%s %v %q\n", rest, info.Mode(), text)
		return err
	}))
	return b.String()
}

// call makes a call that must be answered, whatever the answer, without a secret
// and without much more than was asked for.
func (s hostileSite) call(tool string, arguments json.RawMessage) (text string, ok bool) {
	s.t.Helper()
	ret, err := s.c.Call(s.t.Context(), client.Call{Tool: tool, Arguments: arguments}, client.Events{})
	if err != nil {
		s.t.Fatalf("%s %.200s: %v", tool, arguments, err)
	}
	whole := must.Get(json.Marshal(ret))(s.t)
	if strings.Contains(string(whole), "SEKRET") || strings.Contains(string(whole), "U0VLUkVU") {
		s.t.Errorf("%s %.200s shows a secret: %.300s", tool, arguments, ret.Result)
	}
	if len(ret.Result) > 2<<20 {
		s.t.Errorf("%s %.200s returns %d bytes", tool, arguments, len(ret.Result))
	}
	if ret.ErrorType != nil && *ret.ErrorType == "internal_error" {
		s.t.Errorf("%s %.200s: %s", tool, arguments, ret.Result)
	}
	return ret.Result, ret.Status == "success"
}

func hostilePaths(base string) []string {
	up := strings.Repeat("../", 40)
	return []string{
		base + "/outside/key", base + "/ws/../outside/key", "../outside/key", up + base + "/outside/key", "d/../../outside/key", "./.././outside/key",
		"..//outside///key", "d/./.././../outside/key", "ws/../../outside/key", "out/key", "out-file", "deep", "new-out", "self/self/out/key",
		"root" + base + "/outside/key", "self/../outside/key", "out/../outside/key", "out/../ws/hidden/key", "hidden/key", "in/key", "sneaky", "./hidden/key", "self/hidden/key",
		"HIDDEN/key/../key", "d/../hidden/key", base + "/ws/hidden/key", "root" + base + "/ws/in/key", "~/../" + base + "/outside/key",
		"loop", "loop/x", "fd/0", "fd/3", "fd/7", "input", "/dev/stdin", "/dev/fd/0", "/dev/tty", "/dev/zero", "/dev/null", "/dev/mem", "/dev/random",
		"/proc/self/environ", "/proc/self/mem", "/proc/self/maps", "/proc/self/cmdline", "/proc/kmsg", "/proc/kcore", "/proc/1/environ", "/proc/self/root" + base + "/outside/key",
		"/proc/self/cwd/x", "/proc/thread-self/fd/0", "/sys/kernel/../../proc/self/environ", "/run/x", "/tmp/x", "/var/tmp/x", "/etc/shadow",
		base + "/state/journal/00000001.log", base + "/state.head/head", base + "/state/tokens", base + "/policy.yaml", base + "/config.yaml",
		"d/f/", "d/f/.", "d/f/..", "d/f/x", "d", "d/", ".", "..", "/", "//", "", " ", "~", "~/", "~root/.ssh/id_rsa", "$HOME/x", "`id`", "$(id)", "*", "d/*", "d\x00/f", "d/f\x00", "d\n/f", "d\u202ef",
		"\ufeffd/f", "file:///etc/passwd", "\\\\server\\share", "C:\\x", "NUL", "CON", "-rf", "--help", strings.Repeat("a", 256), strings.Repeat("a/", 3000), strings.Repeat("d/../", 100_000) + "out/key",
	}
}

func TestHostileArgumentsOfFileToolsReachNothing(t *testing.T) {
	t.Parallel()
	s := newHostileSite(t)
	before := s.outside()
	for _, path := range hostilePaths(s.base) {
		p := must.Get(json.Marshal(path))(t)
		for tool, rest := range map[string]string{"read_file": `"encoding":"base64","limit":1`, "edit_file": `"old_string":"E","new_string":"owned"`} {
			if text, ok := s.call(tool, fmt.Appendf(nil, `{"file_path":%s,%s}`, p, rest)); ok {
				t.Errorf("%s of %.200q: %.200s", tool, path, text)
			}
		}
		s.call("write_file", fmt.Appendf(nil, `{"file_path":%s,"content":"owned"}`, p))
		if after := s.outside(); after != before {
			t.Fatalf("%.200q changed what is outside:\n%s\nto\n%s", path, before, after)
		}
	}
	s.alive()
}

func (s hostileSite) alive() {
	s.t.Helper()
	if text, ok := s.call("bash", json.RawMessage(`{"command":"echo still there"}`)); !ok || !strings.Contains(text, "still there") {
		s.t.Errorf("a plain call: %s", text)
	}
}

// hostileCall is a call with what must stand in its answer and, if it is to
// succeed, in the file.
type hostileCall struct {
	tool, arguments, says string
	file, holds           string
}

func hostileCalls() []hostileCall {
	const f, edit = `"file_path":"f"`, `"file_path":"f","old_string":"two","new_string":"2"`
	long := strings.Repeat("x", 1<<20)
	return []hostileCall{
		{"read_file", `{` + f + `,"offset":9223372036854775807,"limit":9223372036854775807}`, "it has 3 lines", "", ""},
		{"read_file", `{` + f + `,"offset":9223372036854775808}`, "too large", "", ""},
		{"read_file", `{` + f + `,"offset":-9223372036854775808}`, "counted from 1", "", ""},
		{"read_file", `{` + f + `,"offset":1e3}`, "digits", "", ""},
		{"read_file", `{` + f + `,"offset":1.0}`, "digits", "", ""},
		{"read_file", `{` + f + `,"offset":"1"}`, "expected an integer", "", ""},
		{"read_file", `{` + f + `,"offset":[1]}`, "expected an integer", "", ""},
		{"read_file", `{` + f + `,"offset":true}`, "expected an integer", "", ""},
		{"read_file", `{` + f + `,"offset":-0}`, "counted from 1", "", ""},
		{"read_file", `{` + f + `,"offset":` + strings.Repeat("9", 100_000) + `}`, "too large", "", ""},
		{"read_file", `{` + f + `,"limit":0}`, "1 or more", "", ""},
		{"read_file", `{` + f + `,"limit":-1}`, "1 or more", "", ""},
		{"read_file", `{` + f + `,"limit":1,"limit":100}`, "limit", "", ""},
		{"read_file", `{` + f + `,"path":"d/f"}`, "contradicts", "", ""},
		{"read_file", `{` + f + `,"File_Path":"d/f"}`, "case-sensitive", "", ""},
		{"read_file", `{"file_path":["f"]}`, "expected a string", "", ""},
		{"read_file", `{"file_path":null}`, "expected a string", "", ""},
		{"read_file", `{"file_path":{"toString":"f"}}`, "expected a string", "", ""},
		{"read_file", `{}`, "required", "", ""},
		{"read_file", `[]`, "arguments", "", ""},
		{"read_file", `"f"`, "arguments", "", ""},
		{"read_file", `{` + f + `,"encoding":"UTF-8"}`, "is not one of", "", ""},
		{"read_file", `{` + f + `,"encoding":"` + long + `"}`, "is not one of", "", ""},
		{"read_file", `{` + f + `,"` + long + `":1}`, "unknown argument", "", ""},
		{"read_file", `{` + f + `,"__proto__":{"file_path":"d/f"}}`, "unknown argument", "", ""},
		{"read_file", `{` + f + `,"numbered":"true"}`, "expected true or false", "", ""},
		{"read_file", `{` + f + `,"numbered":1}`, "expected true or false", "", ""},
		{"read_file", `{"file_path":"bin"}`, "binary", "", ""},
		{"read_file", `{"file_path":"latin"}`, "UTF-8", "", ""},
		{"read_file", `{"file_path":"f\ud800"}`, "", "", ""},
		{"edit_file", `{` + edit + `}`, "2 times", "f", "one\ntwo\ntwo\n"},
		{"edit_file", `{"file_path":"f","old_string":"","new_string":"x"}`, "old_string", "f", "one\ntwo\ntwo\n"},
		{"edit_file", `{"file_path":"f","old_string":"t.o","new_string":"x"}`, "does not occur", "f", "one\ntwo\ntwo\n"},
		{"edit_file", `{"file_path":"f","old_string":"(t)(w)o","new_string":"$2$1","replace_all":true}`, "does not occur", "f", "one\ntwo\ntwo\n"},
		{"edit_file", `{"file_path":"f","old_string":"two","new_string":"2","replace_all":"yes"}`, "expected true or false", "f", "one\ntwo\ntwo\n"},
		{"edit_file", `{"file_path":"f","old_string":"two","new_string":"2","old_str":"one"}`, "contradicts", "f", "one\ntwo\ntwo\n"},
		{"edit_file", `{"file_path":"f","old_string":"two\ntwo","new_string":"$&\\1"}`, "1 replacement", "f", "one\n$&\\1\n"},
		{"edit_file", `{"file_path":"crlf","old_string":"a\nb","new_string":"x\ny"}`, "1 replacement", "crlf", "x\r\ny\r\n"},
		{"edit_file", `{"file_path":"bom","old_string":"\ufeffa","new_string":"b"}`, "1 replacement", "bom", "b\n"},
		{"edit_file", `{"file_path":"open","old_string":"newline","new_string":"end"}`, "No newline at end", "open", "no end"},
		{"edit_file", `{"file_path":"open","old_string":"\n","new_string":"x"}`, "does not occur", "open", "no end"},
		{"edit_file", `{"file_path":"bin","old_string":"a","new_string":"b"}`, "binary", "bin", "a\x00b"},
		{"edit_file", `{"file_path":"latin","old_string":"caf","new_string":"CAF"}`, "1 replacement", "latin", "CAF\xe9"},
		{"edit_file", `{"file_path":"d/f","old_string":"i","new_string":"` + long + `","replace_all":true}`, "2 replacements", "", ""},
		{"edit_file", `{"file_path":"d/f","old_string":"xxxx","new_string":"` + strings.Repeat("y", 100) + `","replace_all":true}`, "larger than", "", ""},
		{"edit_file", `{"file_path":"d/f","old_string":"xx","new_string":"","replace_all":true}`, "1048576 times or more", "", ""},
		{"edit_file", `{"file_path":"d/f","old_string":"` + long + `","new_string":"","replace_all":true}`, "2 replacements", "d/f", "nsde"},
		{"write_file", `{"file_path":"n","content":""}`, "0 bytes", "n", ""},
		{"write_file", `{"file_path":"n","content":"\u0000"}`, "NUL", "n", ""},
		{"write_file", `{"file_path":"n","content":5}`, "expected a string", "n", ""},
		{"write_file", `{"file_path":"n","content":"x","mode":"0777"}`, "unknown argument", "n", ""},
		{"write_file", `{"file_path":"n","content":"x","content":"y"}`, "content", "n", ""},
		{"write_file", `{"file_path":"f/x","content":"x"}`, "not a directory", "f", "one\n$&\\1\n"},
		{"write_file", `{"file_path":"self/self/self/n","content":"through links"}`, "13 bytes", "n", "through links"},
	}
}

func TestHostileArgumentsOfFileToolsAreRefusedOrMeanWhatTheySay(t *testing.T) {
	t.Parallel()
	s := newHostileSite(t)
	before := s.outside()
	for _, c := range hostileCalls() {
		text, _ := s.call(c.tool, json.RawMessage(c.arguments))
		if !strings.Contains(text, c.says) {
			t.Errorf("%s %.200s: %.300q does not say %q", c.tool, c.arguments, text, c.says)
		}
		if c.file == "" {
			continue
		}
		if got, err := os.ReadFile(filepath.Join(s.base, "ws", c.file)); err != nil || string(got) != c.holds {
			t.Errorf("%s %.200s leaves %.100q, %v; want %q", c.tool, c.arguments, got, err, c.holds)
		}
	}
	if after := s.outside(); after != before {
		t.Errorf("changed outside:\n%s\nto\n%s", before, after)
	}
	s.alive()
}
