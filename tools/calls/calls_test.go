package calls

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/toold/toold/internal/redact"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/tools"
)

// one is a call that has ended, and all there is.
type one struct{ output string }

func (o one) Find(_ context.Context, id string) (tools.OtherCall, error) {
	switch id {
	case "call_1":
		return o, nil
	case "call_2":
		return nil, errors.New("the journal cannot be read")
	}
	return nil, nil
}

func (o one) List(context.Context, bool) ([]tools.CallStatus, error) {
	return []tools.CallStatus{o.Status()}, nil
}

func (o one) Status() tools.CallStatus {
	n := int64(len(o.output))
	return tools.CallStatus{ID: "call_1", State: "ended", End: "exit code 0", Bytes: [3]int64{n, 0, n}}
}

func (one) Changed() <-chan struct{} { return nil }

func (o one) ReadAt(s tools.Stream, offset int64, most int) ([]byte, int64) {
	if s == tools.Stderr {
		return nil, offset
	}
	return []byte(o.output[offset:min(int(offset)+most, len(o.output))]), offset
}

func (one) Stop(string) <-chan struct{} { panic("it has ended") }

// partly is a call of which only the first bytes are kept.
type partly struct {
	one
	total   int64
	running bool
}

func (p partly) Find(context.Context, string) (tools.OtherCall, error) { return p, nil }

func (p partly) Status() tools.CallStatus {
	s := tools.CallStatus{ID: "call_1", State: "ended", End: "exit code 0", Bytes: [3]int64{p.total, 0, p.total}}
	if p.running {
		s.State, s.End = "running", ""
	}
	return s
}

func (p partly) ReadAt(s tools.Stream, offset int64, most int) ([]byte, int64) {
	if offset >= int64(len(p.output)) {
		return nil, offset
	}
	return p.one.ReadAt(s, offset, most)
}

// A model that does as the first line says comes to an end, whatever is kept.
func TestReadingOnFromTheNextOffsetEnds(t *testing.T) {
	t.Parallel()
	for _, kept := range []string{"", "0123456789\n0123\n"} {
		of := partly{one{kept}, 100, false}
		for _, begin := range []string{"", `,"offset":0`, `,"offset":99`} {
			args, last := begin, ""
			for range 20 {
				last, _ = run(t, "bash_output", `{"call_id":"call_1","limit":12`+args+`}`, of)
				_, next, more := strings.Cut(last, "next offset ")
				if !more {
					break
				}
				next, _, _ = strings.Cut(next, "]")
				args = `,"offset":` + next
			}
			if strings.Contains(last, "next offset") || !strings.Contains(last, "Do not ask for them again") {
				t.Errorf("%q is kept, from %q: it ends with %q", kept, begin, last)
			}
		}
	}
	if got, _ := run(t, "bash_output", `{"call_id":"call_1","offset":5}`, partly{total: 100, running: true}); !strings.Contains(got, "next offset 100]") {
		t.Errorf("of a running call: %q", got)
	}
	if got, _ := run(t, "bash_output", `{"call_id":"call_1","offset":101}`, partly{total: 100, running: true}); !strings.Contains(got, "read on from offset 100") {
		t.Errorf("of a running call, beyond its end: %q", got)
	}
	if got, _ := run(t, "bash_output", `{"call_id":"call_1","offset":101}`, partly{total: 100}); !strings.Contains(got, "no more will come") {
		t.Errorf("beyond the end: %q", got)
	}
}

// run makes a call of a tool.
func run(t *testing.T, name, args string, all tools.Calls) (text string, failure tools.Failure) {
	t.Helper()
	for _, tool := range New() {
		if tool.Definition().Name != name {
			continue
		}
		inv, err := tool.Build(json.RawMessage(args))
		if err != nil {
			return err.Error(), tools.InvalidArguments
		}
		r := inv.Execute(t.Context(), tools.IO{Calls: all})
		if r.Sandbox == nil || r.IsError != (r.Failure != "") {
			t.Errorf("%s %s: %+v", name, args, r)
		}
		return r.Text, r.Failure
	}
	t.Fatalf("there is no tool %s", name)
	return "", ""
}

func TestAPieceOfOutputEndsWithALineOrACharacter(t *testing.T) {
	t.Parallel()
	lines := one{strings.Repeat("0123456789\n", 10)}
	for _, tc := range []struct {
		of   one
		args string
		want string
	}{
		{lines, `{"call_id":"call_1","offset":0,"limit":25}`, "[call_1 ended: exit code 0; bytes 0-22 of 110 of combined; next offset 22]\n0123456789\n0123456789\n"},
		{lines, `{"call_id":"call_1","offset":22,"limit":25}`, "[call_1 ended: exit code 0; bytes 22-44 of 110 of combined; next offset 44]\n0123456789\n0123456789\n"},
		{lines, `{"bash_id":"call_1","limit":25,"stream":"stdout"}`, "[call_1 ended: exit code 0; bytes 88-110 of 110 of stdout]\n0123456789\n0123456789\n"},
		{lines, `{"call_id":"call_1","offset":110}`, "[call_1 ended: exit code 0; bytes 110-110 of 110 of combined]\n"},
		{lines, `{"call_id":"call_1","stream":"stderr","wait":100}`, "[call_1 ended: exit code 0; bytes 0-0 of 0 of stderr]\n"},
		{one{"ééééé"}, `{"call_id":"call_1","offset":0,"limit":5}`, "[call_1 ended: exit code 0; bytes 0-4 of 10 of combined; next offset 4]\néé"},
		{one{"\x1b[31mred\x1b[0m\n"}, `{"call_id":"call_1"}`, "[call_1 ended: exit code 0; bytes 0-13 of 13 of combined]\nred\n"},
	} {
		if got, failure := run(t, "bash_output", tc.args, tc.of); got != tc.want || failure != "" {
			t.Errorf("%s: got %q, %s; want %q", tc.args, got, failure, tc.want)
		}
	}
}

func TestATokenIsMaskedThatAPieceOfOutputCuts(t *testing.T) {
	t.Parallel()
	token := "gh" + "p_" + strings.Repeat("aB3dE6", 6)
	output := one{"a " + token + " b\n"}
	for offset := range len(output.output) {
		for _, limit := range []int{10, 20, 100} {
			got, failure := run(t, "bash_output", fmt.Sprintf(`{"call_id":"call_1","offset":%d,"limit":%d}`, offset, limit), output)
			recorded := string(redact.Mask([]byte(got)))
			for n := 0; n+6 <= len(token); n++ {
				if failure != "" || strings.Contains(recorded, token[n:n+6]) {
					t.Fatalf("%d bytes from %d on: %q is left in %q %s", limit, offset, token[n:n+6], recorded, failure)
				}
			}
		}
	}
}

func TestFaultsAreTold(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, args, words string
		failure           tools.Failure
	}{
		{"bash_output", `{}`, "required", tools.InvalidArguments},
		{"bash_output", `{"call_id":"x","offset":-1}`, "negative", tools.InvalidArguments},
		{"bash_output", `{"call_id":"x","limit":65537}`, "between 1 and 65536", tools.InvalidArguments},
		{"bash_output", `{"call_id":"x","wait":120001}`, "call again to wait longer", tools.InvalidArguments},
		{"bash_output", `{"call_id":"x","stream":"both"}`, "combined, stdout, stderr", tools.InvalidArguments},
		{"bash_output", `{"call_id":"x"}`, `no call of this conversation has the id "x"; list_calls`, tools.InvalidArguments},
		{"bash_output", `{"call_id":"call_1","offset":4}`, "beyond the end: combined of call_1 has 3 bytes", tools.InvalidArguments},
		{"bash_output", `{"call_id":"call_2"}`, "the journal cannot be read", tools.Internal},
		{"bash_kill", `{"call_id":"call_2"}`, "the journal cannot be read", tools.Internal},
		{"bash_kill", `{"call_id":"call_1"}`, "call_1 had ended already: exit code 0.", ""},
		{"list_calls", `{"every":true}`, "unknown", tools.InvalidArguments},
		{"list_calls", `{}`, "call_1 ended (exit code 0), 3 bytes of output", ""},
	} {
		if got, failure := run(t, tc.name, tc.args, one{"abc"}); !strings.Contains(got, tc.words) || failure != tc.failure {
			t.Errorf("%s %s: got %q, %q; want %q, %q", tc.name, tc.args, got, failure, tc.words, tc.failure)
		}
	}
	if got, _ := run(t, "list_calls", `{}`, nil); got != "No other call of this conversation runs." {
		t.Errorf("without calls: %q", got)
	}
}

func TestAPolicyCanNameTheTools(t *testing.T) {
	t.Parallel()
	for _, tool := range New() {
		inv, err := tool.Build(json.RawMessage(`{"call_id":"call_1"}`))
		if err != nil {
			inv, err = tool.Build(json.RawMessage(`{}`))
		}
		if err != nil {
			t.Fatal(err)
		}
		e := inv.Effects()
		if len(e) != 1 || e[0].Kind != policy.Exec || e[0].Argv[0].Text != tool.Definition().Name || !e[0].Possible {
			t.Errorf("%s has %+v", tool.Definition().Name, e)
		}
		if reads := inv.Traits().ReadOnly; reads == (tool.Definition().Name == "bash_kill") {
			t.Errorf("%s only reads: %v", tool.Definition().Name, reads)
		}
	}
}
