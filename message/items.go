package message

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

type wireItem struct {
	Type   string `json:"type"`
	CallID string `json:"call_id" wire:"id" jsonschema:"names the call in the answer"`
	Status string `json:"status,omitempty" jsonschema:"completed, or absent"`
	Origin
}

type wireShellCall struct {
	wireItem
	Action      wireShellAction `json:"action"`
	Environment *wireLocal      `json:"environment,omitempty" jsonschema:"local, or absent"`
}

// wireShellAction has the arguments of a shell_call. Unknown members make the call invalid.
type wireShellAction struct {
	Commands  []string `json:"commands" jsonschema:"run one after the other"`
	TimeoutMS *int64   `json:"timeout_ms,omitempty" jsonschema:"of each command"`
	MaxOutput *int64   `json:"max_output_length,omitempty" jsonschema:"characters of each stream in the answer"`
	faults    []fault
}

func (a *wireShellAction) bindSelf(raw json.RawMessage) {
	a.faults = bind(raw, a)
	o, err := splitObject(raw)
	if err != nil {
		return
	}
	for _, m := range o {
		if !slices.Contains([]string{"type", "commands", "timeout_ms", "max_output_length"}, m.Name) {
			a.faults = append(a.faults, fault{field: "action." + m.Name, text: "is unknown"})
		}
	}
}

type wireLocal struct {
	Type string `json:"type"`
}

type wireLocalShellCall struct {
	wireItem
	Action json.RawMessage `json:"action" jsonschema:"command as a list of words, working_directory, timeout_ms"`
}

type wirePatchCall struct {
	wireItem
	Operation json.RawMessage `json:"operation" jsonschema:"type, path and diff"`
}

func (w wireItem) call(tool string, arguments json.RawMessage, faults []fault) (ToolCall, *Error) {
	if e := checkID(w.CallID, "call_id", faults); e != nil {
		return ToolCall{}, e
	}
	if w.Status != "" && w.Status != "completed" {
		// There is no return, because the complete item may follow under this id.
		e := InvalidArguments.Errorf("the item is not complete, so nothing ran: its status is %.40q; send it when it is completed", w.Status)
		e.CallID = w.CallID
		return ToolCall{}, e
	}
	return newCall(w.CallID, tool, arguments, faults), nil
}

func (w wireItem) emit(d *Decoder, x *decoding, dialect Dialect, calls ...ToolCall) *Request {
	request := &Request{Dialect: dialect, Origin: w.Origin, Calls: calls}
	for _, call := range calls {
		d.forget(call.ID, w.Origin)
	}
	x.emit(request)
	return request
}

func (d *Decoder) localShellCall(x *decoding) {
	var w wireLocalShellCall
	faults := x.bind(&w)
	call, e := w.call("local_shell", w.Action, faults)
	if e != nil {
		x.errs = append(x.errs, e)
		return
	}
	w.emit(d, x, OpenAILocalShell, call)
}

func (d *Decoder) patchCall(x *decoding) {
	var w wirePatchCall
	faults := x.bind(&w)
	arguments := json.RawMessage(`{"operation":null}`)
	if len(w.Operation) > 0 {
		arguments = slices.Concat([]byte(`{"operation":`), w.Operation, []byte("}"))
	}
	call, e := w.call("apply_patch", arguments, faults)
	if e != nil {
		x.errs = append(x.errs, e)
		return
	}
	w.emit(d, x, OpenAIPatch, call)
}

const mostCommands = 100

func (d *Decoder) shellCall(x *decoding) {
	var w wireShellCall
	faults := x.bind(&w)
	first, e := w.call("bash", nil, faults)
	if e != nil {
		x.errs = append(x.errs, e)
		return
	}
	switch n := len(w.Action.Commands); {
	case len(w.Action.faults) > 0:
		first.refuse(sentence(w.Action.faults))
	case n == 0 || n > mostCommands:
		first.refuse(fmt.Sprintf("action.commands must have 1 to %d commands", mostCommands))
	case w.Environment != nil && w.Environment.Type != "local":
		first.refuse("toold runs commands here: the type of environment must be local")
	case w.Action.MaxOutput != nil && *w.Action.MaxOutput < 0:
		first.refuse("action.max_output_length must not be negative")
	case n > 1 && !IsID(partID(first.ID, n)):
		first.refuse("call_id is too long for a call of several commands")
	}
	if first.Invalid != "" || len(w.Action.Commands) == 1 {
		calls := w.commands(first, first.ID)
		w.emit(d, x, OpenAIShell, calls[:1]...).Most = w.Action.MaxOutput
		return
	}
	request := w.emit(d, x, OpenAIShell, w.commands(first, "")...)
	request.Most, request.Item, request.Work = w.Action.MaxOutput, first.ID, workOf(request.Calls)
}

func workOf(calls []ToolCall) string {
	h := sha256.New()
	for _, call := range calls {
		fmt.Fprintf(h, "%d %s", len(call.Arguments), call.Arguments)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// PartMark separates the id of an item from the number of a part, from 1, in the id of the part.
const PartMark = "#"

func partID(item string, n int) string { return item + PartMark + strconv.Itoa(n) }

// commands returns one call per command, with the given id or, if id is "", numbered ids. There is no terminal,
// because output is data.
func (w *wireShellCall) commands(first ToolCall, id string) []ToolCall {
	var calls []ToolCall
	for i, command := range append(w.Action.Commands, "")[:max(len(w.Action.Commands), 1)] {
		arguments := struct {
			Command  string `json:"command"`
			Timeout  *int64 `json:"timeout,omitempty"`
			Terminal string `json:"terminal"`
		}{command, w.Action.TimeoutMS, "off"}
		call := first
		call.Arguments, _ = Encode(arguments)
		if call.ID = id; id == "" {
			call.ID = partID(first.ID, i+1)
		}
		calls = append(calls, call)
	}
	return calls
}

type shellOutput struct {
	Type   string        `json:"type"`
	CallID string        `json:"call_id"`
	Status string        `json:"status"`
	Most   *int64        `json:"max_output_length,omitempty"`
	Output []shellResult `json:"output"`
}

type shellResult struct {
	Stdout  string       `json:"stdout"`
	Stderr  string       `json:"stderr"`
	Outcome shellOutcome `json:"outcome"`
}

type shellOutcome struct {
	Type     string `json:"type"`
	ExitCode *int   `json:"exit_code,omitempty"`
}

// shellAnswer answers the commands that have returns. Later ones did not start.
func shellAnswer(r *Request, returns []ToolReturn) any {
	out := shellOutput{Type: "shell_call_output", CallID: r.Item, Status: "completed", Most: r.Most}
	if r.Item == "" {
		out.CallID = returns[0].CallID
	}
	for _, ret := range returns {
		out.Output = append(out.Output, ret.command(r.Most))
	}
	for i := len(returns); i < len(r.Calls); i++ {
		text := fmt.Sprintf("Error: not run, since command %d did not run to its end", len(returns))
		out.Output = append(out.Output, shellResult{Stderr: text, Outcome: exit(exitRefused)})
	}
	return out
}

// Exit codes of calls without an exit code of their own, as in toold call.
const (
	exitFailed  = 125 // toold could not run the command
	exitRefused = 126
)

func exit(code int) shellOutcome { return shellOutcome{"exit", &code} }

// Ended reports whether the call ended by itself: without an error, timeout or cancel.
func (r ToolReturn) Ended() bool { return r.ErrorType == nil && !r.TimedOut && !r.Cancelled }

func (r ToolReturn) command(most *int64) shellResult {
	c := shellResult{Stdout: strings.Join(r.Stdout, ""), Stderr: strings.Join(r.Stderr, "")}
	switch {
	case r.TimedOut:
		c.Outcome.Type = "timeout"
	case r.ExitCode != nil:
		c.Outcome = exit(*r.ExitCode)
	case r.Status == "success":
		c.Outcome = exit(0)
	case r.ErrorType != nil && slices.Contains([]ErrorType{Denied, ApprovalTimeout, ProtectedPath}, *r.ErrorType):
		c.Outcome = exit(exitRefused)
	default:
		c.Outcome = exit(exitFailed)
	}
	switch {
	case !r.Ended() && r.StdoutBytes+r.StderrBytes == 0:
		c.Stderr = r.Result
	case r.Note != "":
		c.Stderr = r.Note + "\n" + c.Stderr
	}
	if most != nil {
		c.Stdout, c.Stderr = firstRunes(c.Stdout, *most), firstRunes(c.Stderr, *most)
	}
	return c
}

func firstRunes(s string, n int64) string {
	at := 0
	for ; n > 0 && at < len(s); n-- {
		_, size := utf8.DecodeRuneInString(s[at:])
		at += size
	}
	return s[:at]
}

// localShellOutput answers a local_shell_call. Output is a shellText as JSON.
type localShellOutput struct {
	Type   string `json:"type"`
	ID     string `json:"id"`
	CallID string `json:"call_id"`
	Status string `json:"status"`
	Output string `json:"output"`
}

type shellText struct {
	Output   string        `json:"output"`
	Metadata shellMetadata `json:"metadata"`
}

type shellMetadata struct {
	ExitCode int     `json:"exit_code"`
	Seconds  float64 `json:"duration_seconds"`
}

func localShellAnswer(_ *Request, returns []ToolReturn) any {
	r := returns[0]
	text := shellText{r.Result, shellMetadata{Seconds: float64(r.DurationMS) / 1000}}
	if code := r.command(nil).Outcome.ExitCode; code != nil {
		text.Metadata.ExitCode = *code
	} else {
		text.Metadata.ExitCode = 124 // the outcome is a timeout; as timeout(1)
	}
	output, _ := Encode(text) // texts and numbers can be encoded
	return localShellOutput{"local_shell_call_output", r.CallID, r.CallID, "completed", string(output)}
}

type patchOutput struct {
	Type   string `json:"type"`
	CallID string `json:"call_id"`
	Status string `json:"status"`
	Output string `json:"output"`
}

func patchAnswer(_ *Request, returns []ToolReturn) any {
	status := "completed"
	if returns[0].Status != "success" {
		status = "failed"
	}
	return patchOutput{"apply_patch_call_output", returns[0].CallID, status, returns[0].Result}
}
