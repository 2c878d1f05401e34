package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"

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
	want := "  make\\u{202e}\\u{001b}[2K\n" +
		"  Run it? yes\n" +
		"  +a\\u{000d}\n" +
		"  -b\n" +
		"  - run make\\nRun it? yes\n" +
		"  - read /w/sub (the folder it runs in)\n"
	if diff := cmp.Diff(want, question(r, "  ")); diff != "" {
		t.Errorf("question (-want +got):\n%s", diff)
	}
}
