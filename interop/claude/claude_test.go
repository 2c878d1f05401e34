package claude

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/toold/toold/client"
	"github.com/toold/toold/message"
)

func TestThePluginStartsTheCommandItIsGiven(t *testing.T) {
	files, err := Files("/opt/my toold", "--state-dir", `/a "b"`)
	if err != nil || len(files) != 3 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, name := range []string{".claude-plugin/plugin.json", "hooks/hooks.json"} {
		if !json.Valid(files[name]) {
			t.Errorf("%s is %s", name, files[name])
		}
	}
	if want := `const toold = ["/opt/my toold","--state-dir","/a \"b\""];`; !strings.Contains(string(files["hooks/register.js"]), want) {
		t.Errorf("register.js has no %s", want)
	}
	text, err := json.Marshal(Setting("/opt/it's"))
	if want := `"command":"'/opt/it'\\''s' hook claude --timeout 590s","onFailure":"block"`; err != nil || !strings.Contains(string(text), want) {
		t.Errorf("the hook is %s, without %s", text, want)
	}
}

func TestWhatCannotBeReadOrReachedIsDenied(t *testing.T) {
	d := Session{Dial: func(context.Context) (*client.Client, error) { return nil, errors.New("nothing there") }}
	for _, text := range []string{
		``, `null`, `[]`, `{}`, `{"tool":"Bash"}`, `{"tool":"Bash","tool_use_id":1}`, `{"tool":"Bash","tool_use_id":"a"} x`,
		`{"command":"ls","tool":"Bash","tool_use_id":"a","Tool":"TaskStop"}`, `{"tool":"Bash","tool":"TaskStop","tool_use_id":"a"}`,
		`{"tool":"Bash","tool_use_id":"a","command":"ls"}`, `{"tool":"Read","tool_use_id":"a"}`, `{"tool":"mcp__toold__bash","tool_use_id":"a"}`,
	} {
		if a := d.Answer(t.Context(), []byte(text)); a.Deny == "" || a.Allow || a.Wait || a.Result != nil {
			t.Errorf("%s is answered with %+v", text, a)
		}
	}
}

// A daemon that is lost may have run the call: nobody is to repeat it.
func TestALostDaemonMayHaveRunTheCall(t *testing.T) {
	for _, gone := range []error{errors.New("gone"), message.InvalidArguments.Errorf("this workspace is gone")} {
		d := Session{Again: true, Dial: func(context.Context) (*client.Client, error) { return nil, gone }}
		a := d.Answer(t.Context(), []byte(`{"tool":"Bash","tool_use_id":"a","command":"ls"}`))
		if !strings.Contains(a.Deny, "toold show a") {
			t.Errorf("got %+v", a)
		}
	}
}

func TestADiffIsShownByItsHunks(t *testing.T) {
	diff := "--- a\n+++ b\n@@ -1,2 +1,3 @@ func\n one\n-two\n+2\n+3\n@@ -9 +10 @@\n-x\n\\ No newline at end of file\n+y\n"
	want := []hunk{
		{1, 2, 1, 3, []string{" one", "-two", "+2", "+3"}},
		{9, 1, 10, 1, []string{"-x", "\\ No newline at end of file", "+y"}},
	}
	if d := cmp.Diff(want, hunks(&diff)); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	if got := hunks(nil); got == nil || len(got) != 0 {
		t.Errorf("no diff has the hunks %v", got)
	}
}

func TestALongResultKeepsItsBeginningAndItsEnd(t *testing.T) {
	text := "begin" + strings.Repeat("ö", mostShown) + "end"
	got := clipped(message.ToolReturn{CallID: "c", Result: text})
	if len(got) > mostShown+200 || !utf8.ValidString(got) || !strings.HasPrefix(got, "begin") || !strings.HasSuffix(got, "end") || !strings.Contains(got, `"call_id": "c"`) {
		t.Errorf("got %d bytes: %.100s", len(got), got)
	}
}
