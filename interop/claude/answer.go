package claude

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/toold/toold/client"
	"github.com/toold/toold/internal/strict"
	"github.com/toold/toold/interop/link"
	"github.com/toold/toold/message"
)

// Agent is the agent id of recorded calls of Claude Code.
const Agent = "claude"

// Session answers the calls of one Claude Code session.
type Session struct {
	Dial  func(ctx context.Context) (*client.Client, error)
	Dir   string        // working directory of Claude Code
	ID    string        // the session's id; "": unknown
	Again bool          // the call was sent before, so the daemon may have it
	Wait  time.Duration // how long Answer waits for a return
	// Judge decides on a call that Claude Code executes itself. An error denies it.
	Judge func(ctx context.Context, id, tool string, arguments json.RawMessage) error
}

// Answer is what the mod does next. One field is set.
type Answer struct {
	Deny   string `json:"deny,omitempty"`   // why nothing was done, for the model
	Result any    `json:"result,omitempty"` // result of Claude Code's own tool
	Allow  bool   `json:"allow,omitempty"`  // Claude Code executes the call
	Wait   bool   `json:"wait,omitempty"`   // the call still runs: send it again
}

type event struct {
	Tool string
	ID   string // tool_use_id

	arguments map[string]json.RawMessage
}

func readEvent(text []byte) (e event, err error) {
	if !json.Valid(text) {
		return e, errors.New("it is no JSON")
	}
	members, err := strict.Object(text, math.MaxInt)
	if err != nil {
		return e, err
	}
	e.arguments = map[string]json.RawMessage{}
	for _, m := range members {
		if _, twice := e.arguments[m.Name]; twice {
			return e, fmt.Errorf("%q has two values", m.Name)
		}
		e.arguments[m.Name] = m.Value
	}
	if e.Tool, e.ID = e.text("tool"), e.text("tool_use_id"); e.Tool == "" || e.ID == "" {
		return e, errors.New("tool and tool_use_id are missing")
	}
	for _, name := range []string{"tool", "tool_use_id", "agentId"} {
		delete(e.arguments, name)
	}
	return e, nil
}

func (e event) text(name string) (s string) {
	if json.Unmarshal(e.arguments[name], &s) != nil {
		return ""
	}
	return s
}

func (e event) set(name string, value any) {
	text, _ := json.Marshal(value) // cannot fail for a string or a number
	e.arguments[name] = text
}

// Answer answers one call. If ctx ends first, it cancels the call.
func (s Session) Answer(ctx context.Context, text []byte) Answer {
	e, err := readEvent(text)
	if err != nil {
		return denied("the call cannot be read, so nothing was done: %v", err)
	}
	tool := s.adapt(e)
	switch {
	case tool == "" && e.Tool == "TaskStop":
		return Answer{Allow: true} // not a command of toold
	case tool == "":
		arguments, err := json.Marshal(e.arguments)
		if err == nil {
			err = s.Judge(ctx, e.ID, e.Tool, arguments)
		}
		if err != nil {
			return denied("%v", err)
		}
		return Answer{Allow: true}
	}
	ret, err := s.call(ctx, client.Call{ID: e.ID, Tool: tool, Arguments: e.arguments, AgentID: Agent, ConversationID: s.ID})
	switch {
	case errors.Is(err, errStillRuns):
		return Answer{Wait: true}
	case err != nil:
		return denied("%v", err)
	}
	return e.answer(ret)
}

func denied(format string, args ...any) Answer { return Answer{Deny: fmt.Sprintf(format, args...)} }

// adapt converts the arguments for a tool of toold. It returns "" if Claude Code has to execute the call.
func (s Session) adapt(e event) (tool string) {
	switch e.Tool {
	case "Bash":
		delete(e.arguments, "dangerouslyDisableSandbox") // only a person may widen the sandbox
		e.set("cwd", s.Dir)
		return "bash"
	case "Read":
		delete(e.arguments, "allow_large")
		if string(e.arguments["offset"]) == "0" { // the same as 1, the first line
			delete(e.arguments, "offset")
		}
		if isRendered(e.text("file_path")) || e.arguments["pages"] != nil {
			return ""
		}
		tool = "read_file"
	case "Write":
		tool = "write_file"
	case "Edit":
		tool = "edit_file"
	case "TaskStop":
		id := e.text("task_id") + e.text("shell_id")
		if !strings.HasPrefix(id, message.BackgroundPrefix) {
			return ""
		}
		clear(e.arguments)
		e.set("call_id", id)
		return "bash_kill"
	default:
		own, _ := strings.CutPrefix(e.Tool, "mcp__toold__")
		return strings.TrimPrefix(own, e.Tool)
	}
	if path := e.text("file_path"); path != "" && path[0] != '~' && !filepath.IsAbs(path) {
		e.set("file_path", filepath.Join(s.Dir, path))
	}
	return tool
}

// isRendered reports whether Claude Code shows more of such a file than its bytes.
func isRendered(path string) bool {
	return slices.Contains([]string{".png", ".jpg", ".jpeg", ".gif", ".webp", ".pdf", ".ipynb"}, strings.ToLower(filepath.Ext(path)))
}

var errStillRuns = errors.New("the call still runs")

// call makes or rejoins a call, and waits up to s.Wait.
func (s Session) call(ctx context.Context, call client.Call) (ret message.ToolReturn, err error) {
	dialing, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	c, err := s.Dial(dialing)
	if err != nil {
		return ret, &link.CallError{ID: call.ID, Sent: s.Again, Again: s.Again, Err: err}
	}
	defer c.Close()
	waiting, cancel := context.WithTimeoutCause(ctx, s.Wait, errStillRuns)
	defer cancel()
	ret, err = c.Call(waiting, call, client.Events{})
	switch {
	case err == nil || errors.Is(err, errStillRuns) && ctx.Err() == nil:
		return ret, err
	case ctx.Err() != nil:
		stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		_ = c.Stop(stopping, call.ID, "the user of Claude Code interrupted it") // otherwise the call ends after limits.linger
	}
	return ret, &link.CallError{ID: call.ID, Sent: true, Again: s.Again, Err: err}
}

// Tools returns the tools of toold that Claude Code does not have, in the form that its mod expects.
func (s Session) Tools(ctx context.Context) ([]byte, error) {
	c, err := s.Dial(ctx)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	type tool struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		InputSchema json.RawMessage `json:"inputSchema"`
		IsDeferred  bool            `json:"isDeferred"`
	}
	list := []tool{}
	for _, t := range c.Hello().Tools {
		if slices.Contains([]string{"bash_output", "bash_kill", "list_calls"}, t.Name) {
			list = append(list, tool{t.Name, t.Description, t.Parameters, false})
		}
	}
	return json.Marshal(list)
}
