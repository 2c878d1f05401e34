package message

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/toold/toold/internal/must"
)

// frameSchema returns the part of Schema that describes any frame of a side.
func frameSchema(t *testing.T, side string) *jsonschema.Resolved {
	t.Helper()
	text := must.Get(Schema())(t)
	var s jsonschema.Schema
	must.Do(t, json.Unmarshal(text, &s))
	s.AnyOf = []*jsonschema.Schema{reference(side)}
	resolved := must.Get(s.Resolve(nil))(t)
	return resolved
}

func validate(t *testing.T, schema *jsonschema.Resolved, frame []byte) error {
	t.Helper()
	var v any
	must.Do(t, json.Unmarshal(frame, &v))
	return schema.Validate(v)
}

// TestTheSchemaAcceptsWhatTheDecoderAccepts plays the transcripts: frames that
// decode without an error fit the schema, except those in a tolerated spelling.
func TestTheSchemaAcceptsWhatTheDecoderAccepts(t *testing.T) {
	t.Parallel()
	schema := frameSchema(t, "client_frame")
	names, _ := filepath.Glob("testdata/*.txtar")
	checked := 0
	for _, name := range names {
		archive := must.Get(txtar.ParseFile(name))(t)
		for _, file := range archive.Files {
			for line := range strings.Lines(string(file.Data)) {
				if line[0] != '{' || !strings.Contains(line, `"message_type":"`) && !strings.Contains(line, `"role":`) {
					continue
				}
				in, errs := (&Decoder{}).Decode([]byte(line))
				if len(errs) > 0 || strings.Contains(describe(in, errs), "REFUSED") || tolerated(in, line) {
					continue
				}
				checked++
				if err := validate(t, schema, []byte(line)); err != nil {
					t.Errorf("%s%v", line, err)
				}
			}
		}
	}
	if checked < 60 {
		t.Errorf("only %d frames were checked", checked)
	}
}

// tolerated reports whether a frame lacks what the schema asks for although
// toold can do without: arguments, and the id of a call that is only explained.
func tolerated(in []Inbound, frame string) bool {
	for _, i := range in {
		switch i := i.(type) {
		case *ExplainPolicy:
			return i.Call.ID == "explained"
		case *Request:
			return slices.ContainsFunc(i.Calls, func(c ToolCall) bool { return string(c.Arguments) == "null" }) ||
				strings.Contains(frame, `"tool_call":{}`) || strings.Contains(frame, `"tool_call":{"tool_call_id":"call_x"}`)
		}
	}
	return false
}

func TestTheSchemaRefusesWhatTheDecoderRefuses(t *testing.T) {
	t.Parallel()
	schema := frameSchema(t, "client_frame")
	for _, frame := range []string{
		`{}`, `[]`, `{"message_type":"telepathy_message"}`, `{"message_type":"tool_input"}`,
		`{"message_type":"approval_request_message","tool_call":{"tool_name":"bash","arguments":{}}}`,
		`{"message_type":"approval_request_message","tool_call":{"tool_call_id":7,"tool_name":"bash","arguments":{}}}`,
		`{"message_type":"cancel","all":"yes"}`,
		`{"role":"emperor"}`,
	} {
		if validate(t, schema, []byte(frame)) == nil {
			t.Errorf("%s fits the schema", frame)
		}
	}
}

func TestEveryFrameOfTheSchemaIsKnownToTheDecoder(t *testing.T) {
	t.Parallel()
	for _, f := range clientFrames() {
		_, errs := (&Decoder{}).Decode([]byte(`{"` + f.key + `":"` + f.value + `"}`))
		for _, e := range errs {
			if e.Type == UnknownMessageType {
				t.Errorf("%s: %v", f.value, e)
			}
		}
	}
}

func TestWhatTooldSendsFitsTheSchema(t *testing.T) {
	t.Parallel()
	schema := frameSchema(t, "daemon_frame")
	zero := 0
	frames := []any{
		ToolReturn{CallID: "c", ToolName: "bash"}.Complete(),
		ToolReturn{
			CallID: "c", ToolName: "bash", Status: "success", ExitCode: &zero, Stdout: []string{"x"}, Diff: new("d"), Terminal: new("split"),
			Sandbox: &Sandbox{Enforced: []string{"seccomp"}}, Decision: &Decision{Action: "allow"},
			Denials: []Denial{{Kind: "file", Op: "write", Target: "/etc/x", Setting: "sandbox.write", Hint: "h"}},
		}.Complete(),
		ToolReturn{CallID: "c", ToolName: "bash", ErrorType: new(Denied), Signal: new("KILL")}.Complete(),
		chatAnswer(nil, []ToolReturn{ToolReturn{CallID: "c"}.Complete()}),
		InvalidFrame.Errorf("x"),
		json.RawMessage(OutputDelta{CallID: "c", Gap: &Gap{}}.AppendFrame(nil, []byte("a"))),
		HelloAck{
			MessageType: "hello_ack", Roles: []string{}, Limits: map[string]int64{"a": 1}, Sandbox: Sandbox{Enforced: []string{}},
			Tools: []ToolDefinition{{Name: "bash", Parameters: json.RawMessage(`{}`)}},
		},
		ApprovalRequest{
			MessageType: "approval_request_message", ToolCall: ToolCall{Arguments: json.RawMessage(`{}`)}.Shown(),
			Effects: []EffectLine{{Kind: "exec"}}, Suggestions: []Suggestion{},
			Asker: Asker{Client: "agent", Program: &Program{Name: "p"}, Description: "d"},
		},
		(&ListCalls{}).Answer([]CallInfo{{CallID: "c", Asker: Asker{Client: "agent"}}}),
		Messages{MessageType: "messages", Messages: []json.RawMessage{json.RawMessage(`{}`)}},
	}
	for _, frame := range frames {
		text := must.Get(Encode(frame))(t)
		if err := validate(t, schema, text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	if validate(t, schema, []byte(`{"message_type":"error_message","error_type":"bad_luck","message":"x"}`)) == nil {
		t.Error("an unknown error_type fits the schema")
	}
	odd, err := Encode(ToolReturn{CallID: "c", Denials: []Denial{{Kind: "luck"}}}.Complete())
	if err != nil || validate(t, schema, odd) == nil {
		t.Errorf("an unknown kind of denial fits the schema (%v)", err)
	}
}

func TestEveryErrorTypeIsInTheTable(t *testing.T) {
	t.Parallel()
	file := must.Get(parser.ParseFile(token.NewFileSet(), "error.go", nil, 0))(t)
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		for _, v := range spec.Values {
			if lit, ok := v.(*ast.BasicLit); ok {
				value, _ := strconv.Unquote(lit.Value)
				if !slices.Contains(errorTypes(), ErrorType(value)) {
					t.Errorf("errorTypes lacks %s", value)
				}
			}
		}
		return true
	})
}
