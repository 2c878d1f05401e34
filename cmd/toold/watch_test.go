package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toold/toold/client"
	"github.com/toold/toold/message"
)

func TestAnAnswerNamesItsQuestion(t *testing.T) {
	t.Parallel()
	w := &watcher{open: map[int]message.ApprovalRequest{1: {ID: "approval-a"}, 12: {ID: "approval-b"}}}
	for line, want := range map[string]client.Decision{
		"yes 1":                      {ApprovalID: "approval-a", Approve: true},
		"  Y  12   it is fine  ":     {ApprovalID: "approval-b", Approve: true, Reason: "it is fine"},
		"no 1":                       {ApprovalID: "approval-a"},
		"no approval-b":              {ApprovalID: "approval-b"},
		"n 12 use make -n --verbose": {ApprovalID: "approval-b", Reason: "use make -n --verbose"},
		"no 1 --network full":        {ApprovalID: "approval-a", Reason: "--network full"},
		"yes 1 --network full":       {ApprovalID: "approval-a", Approve: true, Widen: message.Widening{Network: "full"}},
	} {
		got, err := w.answer(line)
		if err != nil {
			t.Errorf("%q: %v", line, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", line, diff)
		}
	}
	for _, line := range []string{"y", "yes", "yes 2", "1", "1 yes", "yes1", "maybe 1", "yes approval", "yes 01", "yes 1 --netwerk full", "yes 1 --network full more"} {
		if got, err := w.answer(line); err == nil {
			t.Errorf("%q was taken for %+v", line, got)
		}
	}
}
