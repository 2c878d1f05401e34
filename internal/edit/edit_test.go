package edit

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// entry is an MCP server as connect writes it.
var entry = Change{Path: Path{"mcpServers", "toold"}, Value: map[string]any{"command": "toold", "args": []string{"mcp"}}}

func TestSettingsAreChangedWhereTheyStand(t *testing.T) {
	t.Parallel()
	deny := Change{Path: Path{"permissions", "deny"}, Value: "Bash", Include: true}
	codex := []Change{{Path: Path{"approval_policy"}, Value: "never"}, {Path: Path{"sandbox_mode"}, Value: "workspace-write"}}
	hands := []Change{{Path: Path{"default"}, Value: "toold"}, {Path: Path{"environments", "[id=toold]", "url"}, Value: "ws://x"}, {Path: Path{"environments", "[id=toold]", "auth_bearer_token"}, Value: "s"}}
	goose := []Change{{Path: Path{"extensions", "developer", "enabled"}, Value: false}, {Path: Path{"extensions", "toold"}, Value: map[string]any{"cmd": "toold", "args": []string{"mcp", "a: b"}}}}
	for name, c := range map[string]struct {
		format       Format
		before, want string
		changes      []Change
	}{
		"json, no file":    {JSON, "", "{\n  \"mcpServers\": {\n    \"toold\": {\n      \"args\": [\n        \"mcp\"\n      ],\n      \"command\": \"toold\"\n    }\n  }\n}\n", []Change{entry}},
		"json, comments":   {JSON, "{\n\t// mine\n\t\"a\": 1, // one\n}\n", "{\n\t// mine\n\t\"a\": 1, // one\n\t\"permissions\": {\n\t\t\"deny\": [\n\t\t\t\"Bash\"\n\t\t]\n\t}\n}\n", []Change{deny}},
		"json, comma":      {JSON, "{\n  \"a\": 1 // one\n}\n", "{\n  \"a\": 1, // one\n  \"b\": true\n}\n", []Change{{Path: Path{"b"}, Value: true}}},
		"json, far comma":  {JSON, "{\n  \"a\": 1 /* one */ , // more\n}\n", "{\n  \"a\": 1 /* one */ , // more\n  \"b\": true\n}\n", []Change{{Path: Path{"b"}, Value: true}}},
		"json, one line":   {JSON, `{"a": {"b": [1]}}`, `{"a": {"b": [1], "c": "x"}}`, []Change{{Path: Path{"a", "c"}, Value: "x"}}},
		"json, list":       {JSON, `{"permissions": {"deny": ["WebFetch"]}}`, `{"permissions": {"deny": ["WebFetch", "Bash"]}}`, []Change{deny}},
		"json, list lines": {JSON, "{\n \"permissions\": {\n  \"deny\": [\n   \"A\"\n  ]\n }\n}\n", "{\n \"permissions\": {\n  \"deny\": [\n   \"A\",\n   \"Bash\"\n  ]\n }\n}\n", []Change{deny}},
		"json, there":      {JSON, `{"permissions": {"deny": ["Bash"]}} // x`, `{"permissions": {"deny": ["Bash"]}} // x`, []Change{deny}},
		"json, another":    {JSON, `{"a": /* old */ "x"}`, `{"a": /* old */ false}`, []Change{{Path: Path{"a"}, Value: false}}},
		"toml, no file":    {TOML, "", "sandbox_mode = \"workspace-write\"\napproval_policy = \"never\"\n", []Change{codex[1], codex[0]}},
		"toml, comments": {
			TOML, "# mine\nmodel = \"x\" # best\n\n[tui]\nsandbox_mode = 1\n", "# mine\nmodel = \"x\" # best\napproval_policy = \"never\"\nsandbox_mode = \"workspace-write\"\n\n[tui]\nsandbox_mode = 1\n", codex,
		},
		"toml, only tables": {TOML, "# mine\n[tui]\na = 1\n", "approval_policy = \"never\"\nsandbox_mode = \"workspace-write\"\n\n# mine\n[tui]\na = 1\n", codex},
		"toml, another":     {TOML, "approval_policy='on-request' # why\nsandbox_mode = 'workspace-write'\n", "approval_policy=\"never\" # why\nsandbox_mode = 'workspace-write'\n", codex},
		"toml, new table":   {TOML, "default = \"a\"\n[[environments]]\nid = \"a\"\nprogram = \"p\"", "default = \"toold\"\n[[environments]]\nid = \"a\"\nprogram = \"p\"\n\n[[environments]]\nid = \"toold\"\nurl = \"ws://x\"\nauth_bearer_token = \"s\"\n", hands},
		"toml, old table":   {TOML, "default = \"toold\"\n[[environments]]\nid = \"toold\"\nurl = \"ws://y\" # there\n[[environments]]\nid = \"b\"\n", "default = \"toold\"\n[[environments]]\nid = \"toold\"\nurl = \"ws://x\" # there\nauth_bearer_token = \"s\"\n[[environments]]\nid = \"b\"\n", hands},
		"yaml, no file":     {YAML, "", "extensions:\n  developer:\n    enabled: false\n", goose[:1]},
		"yaml, empty":       {YAML, "extensions: {} # mine\n", "extensions: # mine\n  developer:\n    enabled: false\n", goose[:1]},
		"yaml, last":        {YAML, "# mine\nextensions:\n  a:\n    enabled: true\n\n# end", "# mine\nextensions:\n  a:\n    enabled: true\n  toold: {\"args\": [\"mcp\", \"a: b\"], \"cmd\": \"toold\"}\n\n# end", goose[1:]},
		"yaml, another":     {YAML, "m: x\nextensions:\n    developer:\n        # shell\n        enabled: true # why\n        type: builtin\nn: |\n  # text\n\n  more\n", "m: x\nextensions:\n    developer:\n        # shell\n        enabled: false # why\n        type: builtin\nn: |\n  # text\n\n  more\n", goose[:1]},
		"yaml, block":       {YAML, "extensions:\n  toold:\n    cmd: other\n    args:\n    - a\n  b: {}\n", "extensions:\n  toold: {\"args\": [\"mcp\", \"a: b\"], \"cmd\": \"toold\"}\n  b: {}\n", goose[1:]},
		"yaml, there":       {YAML, "extensions:\n  toold:\n    cmd: toold\n    args:\n    - mcp\n    - 'a: b'\n", "extensions:\n  toold:\n    cmd: toold\n    args:\n    - mcp\n    - 'a: b'\n", goose[1:]},
		"yaml, list first":  {YAML, "---\nl:\n- a\n- b: c\n\"q k\": 'x'\n", "---\nl:\n- a\n- b: c\n\"q k\": 'x'\nextensions:\n  developer:\n    enabled: false\n", goose[:1]},
	} {
		applies(t, name, c.format, c.before, c.want, c.changes)
		applies(t, name+", byte order mark", c.format, "\ufeff"+c.before, "\ufeff"+c.want, c.changes)
		if crlf := strings.NewReplacer("\n", "\r\n"); strings.Contains(c.before, "\n") {
			applies(t, name+", CRLF", c.format, crlf.Replace(c.before), crlf.Replace(c.want), c.changes)
		}
	}
}

// applies makes changes, makes them again, which changes nothing, and undoes them.
func applies(t *testing.T, name string, format Format, before, want string, changes []Change) {
	t.Helper()
	got, done, err := Apply(format, before, changes)
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: %s", name, diff)
	}
	if again, more, err := Apply(format, got, changes); again != got || len(more) != 0 || err != nil {
		t.Errorf("%s: a second time it is %q, %v, %v", name, again, more, err)
	}
	back, kept, err := Undo(format, got, done)
	if err != nil || len(kept) > 0 {
		t.Errorf("%s: undo: kept %v, %v", name, kept, err)
	}
	words := func(text string) string {
		return strings.Join(strings.Fields(strings.NewReplacer(",", " ", "\ufeff", "").Replace(text)), " ")
	}
	if words(back) != words(before) && words(before) != "" || strings.Contains(back, "\ufeff") != strings.Contains(before, "\ufeff") {
		t.Errorf("%s: undo left %q of %q", name, back, before)
	}
	if strings.Count(before, "\n") > 0 && strings.Contains(before, "\r") != strings.Contains(back, "\r") {
		t.Errorf("%s: undo left %q of %q", name, back, before)
	}
}

// What the owner has changed since stays.
func TestUndoKeepsWhatOthersWrote(t *testing.T) {
	t.Parallel()
	text, done, err := Apply(JSON, "{\n  \"a\": 1\n}\n", []Change{entry, {Path: Path{"b"}, Value: "deny"}})
	if err != nil {
		t.Fatal(err)
	}
	text = strings.Replace(text, `"mcpServers": {`, `"mcpServers": {"other": {"command": "x"},`, 1)
	text = strings.Replace(text, `"b": "deny"`, `"b": "ask"`, 1)
	got, kept, err := Undo(JSON, text, done)
	if err != nil || len(kept) != 1 || kept[0].String() != "b" {
		t.Errorf("kept %v, %v", kept, err)
	}
	var servers map[string]any
	if ok, err := Value(JSON, got, Path{"mcpServers"}, &servers); !ok || err != nil || servers["toold"] != nil || servers["other"] == nil {
		t.Errorf("%v, %v: %s", ok, err, got)
	}
}

func TestWhatCannotBeReadIsRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		format Format
		text   string
		path   Path
		want   string
	}{
		"json end":        {JSON, "{\n\"a\": 1", Path{"b"}, "unexpected EOF"},
		"json word":       {JSON, "{\"a\": yes}", Path{"b"}, "invalid literal: yes"},
		"json two":        {JSON, "{} {}", Path{"b"}, "after top-level value"},
		"json list":       {JSON, "[]", Path{"b"}, "no JSON object"},
		"json twice":      {JSON, `{"a": {}, "a": {}}`, Path{"a", "b"}, "twice"},
		"json no object":  {JSON, `{"a": 1}`, Path{"a", "b"}, "a is no object"},
		"toml string":     {TOML, "a = \"x\nb = 1\n", Path{"b"}, "line 1: basic strings"},
		"toml value":      {TOML, "a = yes\n", Path{"b"}, "line 1: unexpected character"},
		"toml rest":       {TOML, "a = 1 b = 2\n", Path{"b"}, "line 1: expected newline"},
		"toml header":     {TOML, "[a\nb = 1\n", Path{"b"}, "line 1: expected ']'"},
		"toml twice":      {TOML, "a = 1\na = 2\n", Path{"a"}, "twice"},
		"toml table":      {TOML, "[a]\nb = 1\n", Path{"a"}, "a is a table"},
		"toml deep table": {TOML, "[a.b]\nc = 1\n", Path{"a"}, "a is a table"},
		"toml inline":     {TOML, "environments = [{id = 'toold'}]\n", Path{"environments", "[id=toold]", "url"}, "on one line"},
		"yaml flow":       {YAML, "extensions: {a: 1}\n", Path{"extensions", "b"}, "on one line"},
		"yaml twice":      {YAML, "a: 1\na: 2\n", Path{"b"}, "a"},
		"yaml two":        {YAML, "a: 1\n---\nb: 2\n", Path{"b"}, "line"},
		"yaml list":       {YAML, "- a\n", Path{"b"}, ""},
		"yaml anchor":     {YAML, "a: &x\n  b: 1\nc: *x\n", Path{"a", "b"}, "one line"},
		"toml no array":   {TOML, "[environments.x]\na = 1\n", Path{"environments", "[id=toold]", "url"}, "no array of tables"},
	} {
		_, _, err := Apply(c.format, c.text, []Change{{Path: c.path, Value: "x"}})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q in it", name, err, c.want)
		}
	}
}

func FuzzApply(f *testing.F) {
	f.Add(true, "{\n \"a\": [1, {}], // x\n}")
	f.Add(false, "a = 1\n[[environments]]\nid = 'x'\n")
	f.Fuzz(func(t *testing.T, asJSON bool, text string) {
		format, path := TOML, Path{"environments", "[id=toold]", "url"}
		if asJSON {
			format, path = JSON, Path{"a", "b"}
		}
		after, done, err := Apply(format, text, []Change{{Path: path, Value: "x"}})
		if err != nil {
			return
		}
		if again, _, err := Apply(format, after, []Change{{Path: path, Value: "x"}}); again != after || err != nil {
			t.Errorf("%q became %q, and then %q, %v", text, after, again, err)
		}
		if _, _, err := Undo(format, after, done); err != nil {
			t.Errorf("%q became %q, which cannot be taken back: %v", text, after, err)
		}
	})
}

// TestASettingOfAnotherKindStays replaces a list, and the object around it, by something else.
func TestASettingOfAnotherKindStays(t *testing.T) {
	t.Parallel()
	changes := []Change{{Path: Path{"permissions", "deny"}, Value: "Bash", Include: true}, {Path: Path{"a"}, Value: true}}
	_, done, err := Apply(JSON, `{"permissions": {"deny": ["A"]}, "a": false}`, changes)
	if err != nil {
		t.Fatal(err)
	}
	for before, want := range map[string]string{
		`{"permissions": {"deny": "all"}, "a": true}`: `{"permissions": {"deny": "all"}, "a": false}`,
		`{"permissions": "none", "a": true}`:          `{"permissions": "none", "a": false}`,
		`{"permissions": {"deny": 1}, "a": true}`:     `{"permissions": {"deny": 1}, "a": false}`,
	} {
		got, kept, err := Undo(JSON, before, done)
		if got != want || len(kept) != 1 || err != nil {
			t.Errorf("%s: got %s, kept %v, %v", before, got, kept, err)
		}
	}
}
