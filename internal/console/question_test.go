package console

import (
	"bufio"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toold/toold/client"
	"github.com/toold/toold/internal/describe"
	"github.com/toold/toold/message"
)

func TestAQuestionHidesNothingAndImitatesNothing(t *testing.T) {
	t.Parallel()
	r := message.ApprovalRequest{
		Preview: message.Preview{Text: "make\u202e\x1b[2K\nRun it? yes", Diff: "+a\r\n-b\n"},
		Effects: []message.EffectLine{
			{Text: "run make\nRun it? yes"},
			{Kind: "read", Text: "read /w/sub", Source: "cwd"},
		},
	}
	want := "  | make\\u{202e}\\u{001b}[2K\n" +
		"  | Run it? yes\n" +
		"  | +a\\u{000d}\n" +
		"  | -b\n" +
		"  - run make\\nRun it? yes\n" +
		"  - read /w/sub (the folder it runs in)\n"
	if diff := cmp.Diff(want, describe.Question(r, "  ")); diff != "" {
		t.Errorf("question (-want +got):\n%s", diff)
	}
}

func TestWhatAYesMayBeRememberedAsIsSaidInPlainWords(t *testing.T) {
	t.Parallel()
	got := describe.Suggestions([]message.Suggestion{{
		Remember: "prefix", Changes: []string{"under commands: x"}, WouldAllow: []string{"make a"}, AllowsRefused: []string{"make b"}, WouldNotAllow: []string{"make; ls"},
	}}, "")
	want := "a yes may also be remembered:\n" +
		"  prefix: writes into your policy\n" +
		"    under commands: x\n" +
		"    would also have allowed: make a\n" +
		"    would also have allowed what a person refused: make b\n" +
		"    would not allow: make; ls\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("suggestions (-want +got):\n%s", diff)
	}
}

func TestWhatNoPersonAnsweredIsNotSaidToBeDeniedBySomebody(t *testing.T) {
	t.Parallel()
	for want, r := range map[string]message.ApprovalResolved{
		"not answered: the call was cancelled":              {By: "cancelled", Reason: "the call was cancelled"},
		"not answered: no one answered before the deadline": {By: "deadline", Reason: "no one answered before the deadline"},
		"denied by ann: no":                                 {By: "ann", Reason: "no"},
		"approved by policy":                                {By: "policy", Approve: true},
	} {
		if got := describe.Resolved(r); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestADecisionWithoutARuleNamesNone(t *testing.T) {
	t.Parallel()
	for rule, want := range map[string]string{
		"no rule against it": "allow by policy, no rule against it (built-in): It may read a.",
		"builds":             "allow by policy, rule builds (built-in): It may read a.",
	} {
		if got := describe.Decision(message.Decision{Action: "allow", By: "policy", Rule: rule, Source: "built-in", Reason: "It may read a."}); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestACallThatWasOnlyJudgedDidNotRun(t *testing.T) {
	t.Parallel()
	for want, r := range map[string]message.ToolReturn{
		"ended, judged, after 0s":    {ToolName: "judge", Status: "success"},
		"ended, success, after 40ms": {DurationMS: 40, ToolName: "read_file", Status: "success"},
		"ended, success, after 1.5s": {DurationMS: 1523, ToolName: "read_file", Status: "success"},
		"ended, success, after 0s":   {ToolName: "read_file", Status: "success"},
	} {
		if got := returnText(r); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestAPersonMayWidenTheSandboxAtTheTerminal(t *testing.T) {
	t.Parallel()
	may := &message.MayWiden{Network: []string{"proxy", "full"}, Write: []string{"/data"}}
	full := client.Decision{Approve: true, Widen: message.Widening{Network: "full"}}
	closed := client.Decision{Reason: "the terminal was closed"}
	for typed, want := range map[string]client.Decision{
		"y\n":                          {Approve: true},
		"yes: because it is\n":         {Approve: true, Reason: "because it is"},
		"yes | head -1\nn: no\n":       {Reason: "no"},
		"n not now\n":                  {Reason: "not now"},
		"":                             closed,
		"y":                            closed, // half a line
		"\n":                           closed,
		"w\n":                          closed,
		"w\n--network full\n":          closed,
		"w\n\nno thanks\n":             {Reason: "thanks"},
		"w\n--network full\nn\nn\n":    {},
		"w\n--network full\ny\n":       full,
		"w\n--network full\n\nhm\ny\n": full,
		"w\n--network bogus\n--network full\nyes\n":         full,
		"widen so\n --network proxy --write /data/x\nyes\n": {Approve: true, Reason: "so", Widen: message.Widening{Network: "proxy", Write: "/data/x"}},
		"w\nfull\n--netwerk full\n--write=/data\ny\n":       {Approve: true, Widen: message.Widening{Write: "/data"}},
		"w\n--help\n\nn\n":              {},
		"w\n--network full more\n\nn\n": {},
	} {
		var out strings.Builder
		got := AskPerson(bufio.NewReader(strings.NewReader(typed)), &out, message.ApprovalRequest{MayWiden: may})
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s%s", typed, diff, out.String())
		}
		if got.Widen != (message.Widening{}) && !strings.Contains(out.String(), "for this one call:\n  - it may ") {
			t.Errorf("%q: it was not told what that means: %s", typed, out.String())
		}
	}
	// Where nothing may be added, the word is as unclear as any other.
	var out strings.Builder
	if got := AskPerson(bufio.NewReader(strings.NewReader("w\n--network full\ny\n")), &out, message.ApprovalRequest{}); !got.Approve || got.Widen != (message.Widening{}) || strings.Contains(out.String(), "widen") {
		t.Errorf("got %+v: %s", got, out.String())
	}
}

func TestAnUnclearAnswerIsAskedAgain(t *testing.T) {
	t.Parallel()
	for _, unclear := range []string{"maybe", "?", "", "  ", "yess", "not", "1", "\x1b[2K", "w"} {
		for clear, want := range map[string]client.Decision{"y": {Approve: true}, "n no need": {Reason: "no need"}} {
			var out strings.Builder
			got := AskPerson(bufio.NewReader(strings.NewReader(unclear+"\n"+clear+"\n")), &out, message.ApprovalRequest{})
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%q, then %q (-want +got):\n%s", unclear, clear, diff)
			}
			if n := strings.Count(out.String(), "Run it?"); n != 2 || strings.Contains(out.String(), "\x1b") {
				t.Errorf("%q: asked %d times: %q", unclear, n, out.String())
			}
		}
	}
}

func TestAPersonMayLetAYesCountForMore(t *testing.T) {
	t.Parallel()
	r := message.ApprovalRequest{
		ToolCall:    message.ToolCall{Arguments: []byte(`{"command":"npm run lint","timeout":5}`)}.Shown(),
		Suggestions: []message.Suggestion{{Remember: "conversation"}, {Remember: "command"}},
	}
	for typed, want := range map[string]client.Decision{
		"c\n":                   {Approve: true, Remember: "conversation"},
		"command: it is ok\n":   {Approve: true, Remember: "command", Reason: "it is ok"},
		"command it is ok\nn\n": {},
		"p\nn\n":                {}, // not offered
		"r\nn\n":                {}, // without a pattern
		"rule npm run *\n":      {Approve: true, Remember: "rule", Pattern: "npm run *"},
		"e\nn\n":                {},
		"edit npm test\n":       {Approve: true, Arguments: []byte(`{"command":"npm test","timeout":5}`)},
	} {
		var out strings.Builder
		if diff := cmp.Diff(want, AskPerson(bufio.NewReader(strings.NewReader(typed)), &out, r)); diff != "" {
			t.Errorf("%q (-want +got):\n%s%s", typed, diff, out.String())
		}
	}
	var out strings.Builder
	AskPerson(bufio.NewReader(strings.NewReader("n\n")), &out, message.ApprovalRequest{})
	if text := out.String(); strings.Contains(text, "conversation") || strings.Contains(text, "dit") {
		t.Errorf("what is not offered is named: %s", text)
	}
}

// What runs is what was typed: JSON would replace other bytes.
func TestAnEditedCommandIsText(t *testing.T) {
	t.Parallel()
	r := message.ApprovalRequest{ToolCall: message.ToolCall{Arguments: json.RawMessage(`{"command":"ls"}`)}.Shown()}
	for command, want := range map[string]bool{"rm a": true, "rm a\xff": false, "": false} {
		if _, ok := editedArguments(r, command); ok != want {
			t.Errorf("%q: %v", command, ok)
		}
	}
}

func TestTheCommandThatShowsAllOfAQuestionCanBeCopied(t *testing.T) {
	t.Parallel()
	r := message.ApprovalRequest{CallID: "a;id", Preview: message.Preview{Text: strings.Repeat("x\n", 200)}}
	if got := describe.Question(r, ""); !strings.Contains(got, "toold show 'a;id' prints them") {
		t.Error(got)
	}
}

// The client chooses all of these names, but that of its token.
func TestAnAskerCannotPoseAsAnother(t *testing.T) {
	t.Parallel()
	a := message.Asker{Client: "agent", Program: &message.Program{Name: "x, agent main"}, AgentID: "a, conversation c"}
	if got, want := describe.Asker(a, ""), `from agent, program "x, agent main", agent "a, conversation c"`+"\n"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	a = message.Asker{Client: "agent", Program: &message.Program{Name: "claude code", Version: "1"}, AgentID: "a", ConversationID: "c"}
	if got, want := describe.Asker(a, ""), "from agent, program claude code 1, agent a, conversation c\n"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
