package dispatch_test

import (
	"encoding/json"
	"testing"

	"github.com/toold/toold/internal/dispatch"
)

// A list of calls says what each is about, whichever spelling of its arguments the agent uses.
func TestTheLineOfACallSaysWhatItIsAbout(t *testing.T) {
	for _, c := range []struct{ tool, arguments, want string }{
		{"bash", `{"command":"ls -l","timeout":5000}`, "bash ls -l"},
		{"exec_command", `{"cmd":"ls\nrm x"}`, `exec_command ls\nrm x`},
		{"shell", `{"command": ["bash", "-lc", "rm x"]}`, `shell {"command":["bash","-lc","rm x"]}`},
		{"read_file", `{"file_path":"a.txt"}`, "read_file a.txt"},
		{"read_file", `{"path":"a.txt"}`, "read_file a.txt"},
		{"write_file", `{"content":"x","filePath":"a.txt"}`, "write_file a.txt"},
		{"grep", `{"pattern":"h.","path":"note.txt"}`, "grep h. note.txt"},
		{"LS", `{"directory":"src"}`, "LS src"},
		{"WebFetch", `{"url":"https://example.com"}`, `WebFetch {"url":"https://example.com"}`},
		{"list_calls", `{}`, "list_calls"},
		{"list_calls", ``, "list_calls"},
		{"bash", `{"command":`, `bash {"command":`},
	} {
		if got := dispatch.CallText(c.tool, json.RawMessage(c.arguments)); got != c.want {
			t.Errorf("%s %s: got %q, want %q", c.tool, c.arguments, got, c.want)
		}
	}
}
