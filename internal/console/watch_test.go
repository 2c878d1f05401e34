package console

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toold/toold/client"
	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/message"
)

func TestAnAnswerNamesItsQuestion(t *testing.T) {
	t.Parallel()
	w := &watcher{pending: map[int]message.ApprovalRequest{1: {ID: "approval-a"}, 12: {ID: "approval-b"}}}
	for line, want := range map[string]client.Decision{
		"yes 1":                      {ApprovalID: "approval-a", Approve: true},
		"  Y  12   it is fine  ":     {ApprovalID: "approval-b", Approve: true, Reason: "it is fine"},
		"no 1":                       {ApprovalID: "approval-a"},
		"no approval-b":              {ApprovalID: "approval-b"},
		"n 12 use make -n --verbose": {ApprovalID: "approval-b", Reason: "use make -n --verbose"},
		"no 1 --network full":        {ApprovalID: "approval-a", Reason: "--network full"},
		"deny 1":                     {ApprovalID: "approval-a"},
		"allow 12":                   {ApprovalID: "approval-b", Approve: true},
		"yes 1 --network full":       {ApprovalID: "approval-a", Approve: true, Widen: message.Widening{Network: "full"}},
	} {
		got, err := w.parseAnswer(line)
		if err != nil {
			t.Errorf("%q: %v", line, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", line, diff)
		}
	}
	for _, line := range []string{"y", "yes", "yes 2", "1", "1 yes", "yes1", "maybe 1", "yes approval", "yes 01", "yes 1 --netwerk full", "yes 1 --network full more"} {
		if got, err := w.parseAnswer(line); err == nil {
			t.Errorf("%q was taken for %+v", line, got)
		}
	}
}

func TestALineThatAnswersNothingSaysWhatDoes(t *testing.T) {
	t.Parallel()
	one := map[int]message.ApprovalRequest{3: {ID: "approval-c"}}
	two := map[int]message.ApprovalRequest{3: {ID: "approval-c"}, 4: {ID: "approval-d"}}
	numbers := map[string]int{"approval-a": 1, "approval-b": 2, "approval-c": 3, "approval-d": 4}
	for _, c := range []struct {
		line    string
		pending map[int]message.ApprovalRequest
		want    string
	}{
		{"yes", one, "which question? Say yes 3"},
		{"n", one, "which question? Say n 3"},
		{"y", two, "which question? Say y NUMBER; questions that wait: 3, 4"},
		{"yes", nil, "no question waits"},
		{"yes 1", one, "question 1 waits no longer; questions that wait: 3"},
		{"no approval-b too late", nil, "question 2 waits no longer; no question waits"},
		{"yes 7", one, `no question has the number "7"; questions that wait: 3`},
		{"ls -la", one, `"ls" is no answer; type help for those that are`},
		{"maybe 3", one, `"maybe" is no answer; type help for those that are`},
		{"1 yes", one, `"1" is no answer; type help for those that are`},
		{"command 3", one, `question 3 does not take "command 3"; say yes 3, or no 3 and why`},
		{"rule 3", one, `question 3 does not take "rule 3"; say yes 3, or no 3 and why`},
		{"edit 3", one, `question 3 does not take "edit 3"; say yes 3, or no 3 and why`},
	} {
		w := &watcher{pending: c.pending, numbers: numbers}
		if d, err := w.parseAnswer(c.line); err == nil || err.Error() != c.want {
			t.Errorf("%q with %d waiting: got %+v, %v; want %s", c.line, len(c.pending), d, err, c.want)
		}
	}
}

func TestALineThatIsTooLongIsRefusedAndTheNextOneTaken(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	typed, said := filepath.Join(dir, "in"), filepath.Join(dir, "err")
	must.Do(t, os.WriteFile(typed, []byte("no 1 "+strings.Repeat("x", 200<<10)+"\nyes 7\n\nno 8"), 0o600))
	in := must.Get(os.Open(typed))(t)
	defer in.Close()
	out := must.Get(os.Create(said))(t)
	defer out.Close()
	(&watcher{Console: Console{In: in, Err: out}}).readAnswers(t.Context())
	text, err := os.ReadFile(said)
	if lines := strings.Split(string(text), "\n"); err != nil || len(lines) != 4 || !strings.Contains(lines[0], "more than 65536 bytes") ||
		!strings.Contains(lines[1], `number "7"`) || !strings.Contains(lines[2], `number "8"`) {
		t.Errorf("%v, it says:\n%s", err, text)
	}
}

// A daemon that has just begun lists a question that waited for the one before it only when
// it has asked it again, which may be after it was asked what waits.
func TestAQuestionThatIsAskedAgainKeepsItsNumber(t *testing.T) {
	t.Parallel()
	out := must.Get(os.Create(filepath.Join(t.TempDir(), "out")))(t)
	defer out.Close()
	w := &watcher{
		Console: Console{Out: out},
		pending: map[int]message.ApprovalRequest{}, numbers: map[string]int{}, resolvedIDs: map[string]bool{},
	}
	first, second := message.ApprovalRequest{ID: "approval-a"}, message.ApprovalRequest{ID: "approval-b"}
	w.showRequest(first)
	w.closeRequest(message.ApprovalResolved{ID: "approval-a", Reason: "it waits no longer"})
	if got, err := w.parseAnswer("yes 1"); err == nil {
		t.Errorf("a question that waits no longer was answered: %+v", got)
	}
	w.showRequest(second)
	w.showRequest(first)
	w.showRequest(first)
	if got, err := w.parseAnswer("yes 1"); err != nil || got.ApprovalID != "approval-a" {
		t.Errorf("the question that was asked again: %+v, %v", got, err)
	}
	shown, err := os.ReadFile(out.Name())
	if n := strings.Count(string(shown), "[1] approval-a"); err != nil || n != 3 {
		t.Errorf("it was shown %d times (%v), want asked, gone and asked again:\n%s", n, err, shown)
	}
	w.unconfirmed = map[string]bool{"approval-a": true, "approval-b": true}
	w.showRequest(first)
	w.reconcile(nil)
	if got, err := w.parseAnswer("yes 1"); err != nil || got.ApprovalID != "approval-a" {
		t.Errorf("a question that was asked again before the list came: %+v, %v", got, err)
	}
	if got, err := w.parseAnswer("yes 2"); err == nil {
		t.Errorf("a question that waits no longer was answered: %+v", got)
	}
	w.showResolution(message.ApprovalResolved{ID: "approval-a"})
	w.showRequest(first)
	if got, err := w.parseAnswer("yes 1"); err == nil {
		t.Errorf("a question that was answered is open again: %+v", got)
	}
}

// An answer may arrive after the list of what waits that a new connection begins with, and twice: as the event and as the
// response to the decision.
func TestTheAnswerToAQuestionIsShownOnce(t *testing.T) {
	t.Parallel()
	out := must.Get(os.Create(filepath.Join(t.TempDir(), "out")))(t)
	defer out.Close()
	w := &watcher{
		Console: Console{Out: out},
		pending: map[int]message.ApprovalRequest{}, numbers: map[string]int{}, resolvedIDs: map[string]bool{},
	}
	w.showRequest(message.ApprovalRequest{ID: "approval-a"})
	w.unconfirmed = map[string]bool{"approval-a": true}
	w.reconcile(nil)
	answer := message.ApprovalResolved{ID: "approval-a", By: "ann", Reason: "it is late"}
	w.showResolution(answer)
	w.showResolution(answer)
	w.showResolution(message.ApprovalResolved{ID: "approval-never-shown", By: "ann"})
	shown, err := os.ReadFile(out.Name())
	if n := strings.Count(string(shown), "denied by ann"); err != nil || n != 1 {
		t.Errorf("%d answers were shown (%v), want 1:\n%s", n, err, shown)
	}
}

func TestOfALineThatIsRedrawnTheLastStateIsShownBehindItsLabel(t *testing.T) {
	t.Parallel()
	c := (&callScreen{}).add(callKey{id: "call_1"})
	for in, want := range map[string]string{
		"10%\r20%\r\n": "A | 20%\n",
		"⠙\x1b[1G\x1b[0K⠹\x1b[2K\x1b[1Gdone\n": "A | done\n",
		"\x1b[2Kplain\x1b[G":                   "A | plain\n",
	} {
		if got := c.outputLines(message.OutputDelta{Stream: "stdout", Data: in}) + c.flush(); got != want {
			t.Errorf("of %q comes %q, want %q", in, got, want)
		}
	}
}

// A daemon that was started again asks a question again, which may mean something else by then.
func TestAQuestionThatIsAskedAgainAndDiffersIsShownAgain(t *testing.T) {
	t.Parallel()
	out := must.Get(os.Create(filepath.Join(t.TempDir(), "out")))(t)
	defer out.Close()
	w := &watcher{
		Console: Console{Out: out},
		pending: map[int]message.ApprovalRequest{}, numbers: map[string]int{}, resolvedIDs: map[string]bool{},
	}
	for _, path := range []string{"/w/a", "/w/a", "/w/a (which is /w/b)"} {
		w.showRequest(message.ApprovalRequest{ID: "approval-a", Effects: []message.EffectLine{{Kind: "write", Text: "write " + path}}})
	}
	shown, err := os.ReadFile(out.Name())
	if n := strings.Count(string(shown), "[1] approval-a"); err != nil || n != 2 || !strings.Contains(string(shown), "which is /w/b") {
		t.Errorf("it was shown %d times (%v), want 2:\n%s", n, err, shown)
	}
}
