package audit

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toold/toold/internal/console"
	"github.com/toold/toold/internal/journal"
	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/message"
)

// A text is found however the client has written it in JSON, among arguments and in results.
func TestATextIsFoundInWhateverFormJSONHasIt(t *testing.T) {
	t.Parallel()
	record := must.Get(journal.Open(t.Context(), t.TempDir(), journal.Self()))(t)
	defer record.Close()
	answered := func(id, arguments, result string) {
		t.Helper()
		call := journal.Call{Client: "agent", ID: id, Tool: "write_file", Arguments: []byte(arguments), Message: []byte(`{}`)}
		_, _, err := record.Answer(t.Context(), call, false, journal.Outcome{Status: "success"}, func(seq int64) (string, []byte, error) {
			body, err := json.Marshal(message.ToolReturn{CallID: id, Result: result}.Complete())
			return fmt.Sprint("message-", seq), body, err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	answered("plain", `{"content":"say \"<b>\" & \\n für 😀\n\tend/"}`, "")
	answered("escaped", `{"content":"say \u0022\u003Cb\u003e\" \u0026 \\n f\u00fcr \ud83d\uDE00\u000a\u0009end\/"}`, "")
	answered("result", `{}`, "say \"<b>\" & \\n für 😀\n\tend/")
	answered("none", `{"content":"\u00zz \ud83d \\"}`, "")
	for _, text := range []string{`"<b>"`, `say "`, `<b>`, `>" & `, `" & \n`, "für", "r 😀", "😀\n\tend", "end/", "say \"<b>\" & \\n für 😀\n\tend/"} {
		out := must.Get(os.Create(filepath.Join(t.TempDir(), "out")))(t)
		l := Log{Console: console.Console{Out: out, Err: out, JSON: true}, Since: "1d", Most: 10, Text: text}
		must.Do(t, l.Run(t.Context(), record))
		shown := must.Get(os.ReadFile(out.Name()))(t)
		for id, want := range map[string]int{"plain": 1, "escaped": 1, "result": 1, "none": 0} {
			if n := strings.Count(string(shown), `{"tool_call_id":"`+id+`"`); n != want {
				t.Errorf("--grep %q: call %q is listed %d times", text, id, n)
			}
		}
		out.Close()
	}
}
