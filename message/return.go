package message

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Complete returns r with all derived fields: ids, date and mirrored values. Status remains "success" only if nothing
// indicates a failure. Invalid UTF-8 becomes U+FFFD.
func (r ToolReturn) Complete() ToolReturn {
	r.MessageType, r.Name = returnType, r.ToolName
	r.ID, r.OTID = cmp.Or(r.ID, NewID("message")), cmp.Or(r.OTID, NewID("otid"))
	r.Date = cmp.Or(r.Date, date(time.Time{}))
	r.ToolReturn = strings.ToValidUTF8(r.Result, "\ufffd")
	r.Stdout, r.Stderr = lines(strings.Join(r.Stdout, "")), lines(strings.Join(r.Stderr, ""))
	r.Denials = r.Denials[:min(len(r.Denials), maxDenials)]
	if r.Status != "success" || r.failed() {
		r.Status = "error"
	}
	r.mirror()
	return r
}

func (r ToolReturn) failed() bool {
	hasCode := r.ExitCode != nil && *r.ExitCode != 0
	return !r.Ended() || r.Signal != nil || hasCode
}

func (r *ToolReturn) mirror() {
	r.Result = r.ToolReturn
	r.ToolReturns = []returnItem{{
		Type: "tool", CallID: r.CallID, Status: r.Status, ToolReturn: r.ToolReturn, Stdout: r.Stdout, Stderr: r.Stderr,
	}}
}

func date(t time.Time) string {
	if t.IsZero() {
		t = time.Now()
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z07:00")
}

// lines returns the array of the Letta dialects: empty or one string, because splitting would lose the last newline.
func lines(s string) []string {
	if s == "" {
		return []string{}
	}
	return []string{strings.ToValidUTF8(s, "\ufffd")}
}

// chatReturn has no status, so Content describes a failure.
type chatReturn struct {
	Role    string `json:"role"`
	CallID  string `json:"tool_call_id"`
	Name    string `json:"name"`
	Content string `json:"content"`
}

func chatAnswer(_ *Request, returns []ToolReturn) any {
	r := returns[0]
	return chatReturn{"tool", r.CallID, r.ToolName, r.chatContent()}
}

func (r ToolReturn) chatContent() string {
	switch {
	case r.Status == "success" || strings.HasPrefix(r.Result, "Error"):
		return r.Result
	case strings.HasPrefix(r.Result, "Exit code"):
		return "Error: " + r.Result
	}
	return strings.TrimSuffix("Error: "+r.failure()+"\n"+r.Result, "\n")
}

func (r ToolReturn) failure() string {
	switch {
	case r.ErrorType != nil:
		return string(*r.ErrorType)
	case r.Signal != nil:
		return "killed by signal " + *r.Signal
	case r.ExitCode != nil:
		return fmt.Sprintf("exit code %d", *r.ExitCode)
	}
	return "the call failed"
}

const maxDenials = 16

// Denial is one access that the sandbox denied.
type Denial struct {
	Kind    string `json:"kind" enum:"file,socket,host,name,protected,syscall,limit"`
	Op      string `json:"op" jsonschema:"what was tried: read, write, connect to, …"`
	Target  string `json:"target" jsonschema:"the path, host, name of a system call or limit"`
	Exact   bool   `json:"exact" jsonschema:"toold refused it itself; false: inferred from the output and confirmed by what the sandbox allows"`
	Setting string `json:"setting" jsonschema:"the key of the configuration, or the rule of the policy, that governs it"`
	Hint    string `json:"hint" jsonschema:"why, and what to do next"`
}

const (
	returnType   = "tool_return_message"
	returnBegins = `{"message_type":"` + returnType + `",`
	mirrorBegins = `,"result":`
)

// Recorder returns a function that encodes a completed return for the journal, without fields that mirror others.
// Record.Whole restores these.
func (r ToolReturn) Recorder() (record func(seq int64) []byte, err error) {
	type whole ToolReturn
	text, err := Encode(struct {
		whole
		Result      *int `json:"result,omitempty"` // these shadow the fields of whole
		ToolReturns *int `json:"tool_returns,omitempty"`
		SeqID       *int `json:"seq_id,omitempty"`
	}{whole: whole(r)})
	if err != nil {
		return nil, err
	}
	// The journal assigns seq.
	return func(seq int64) []byte {
		b := append(bytes.Clone(text[:len(text)-1]), `,"seq_id":`...)
		return append(strconv.AppendInt(b, seq, 10), '}')
	}, nil
}

// A Record is a journaled message: a frame, or a return without mirrored fields.
type Record []byte

// Whole returns the frame of a recorded return. Anything else it returns unchanged.
func (record Record) Whole() []byte {
	if !bytes.HasPrefix(record, []byte(returnBegins)) || bytes.Contains(record, []byte(mirrorBegins)) {
		return record
	}
	r, err := record.Return()
	if err != nil {
		return record
	}
	frame, err := Encode(r)
	if err != nil {
		return record
	}
	return frame
}

// Return decodes a recorded return or its frame. It returns an error for anything else, for instance the note that
// replaces a lost return.
func (record Record) Return() (r ToolReturn, err error) {
	if err := json.Unmarshal(record, &r); err != nil {
		return ToolReturn{}, err
	}
	if r.MessageType != returnType {
		return ToolReturn{}, fmt.Errorf("it is no return: %.200s", record)
	}
	if r.ToolReturns == nil && r.Result == "" {
		r.mirror()
	}
	return r, nil
}
