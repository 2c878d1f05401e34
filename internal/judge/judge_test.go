package judge

import (
	"testing"

	"github.com/toold/toold/message"
)

func TestWhatAnAgentWroteIsShownOnOneLine(t *testing.T) {
	t.Parallel()
	e := Explanation{Recorded: &message.Decision{Action: "deny", Reason: "two\nlines\x1b[2J"}}
	e.Reason = "a\nb"
	for _, r := range e.String() {
		if r == 0x1b {
			t.Errorf("an escape sequence reaches the terminal: %q", e.String())
		}
	}
}
