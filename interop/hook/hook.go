// Package hook answers the hooks of agents that execute their tools themselves. Before each call the agent starts
// `toold hook DIALECT`, which makes the daemon decide on the call and record it. Any failure denies. Whether the agent
// obeys is beyond toold's control.
package hook

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/toold/toold/client"
	"github.com/toold/toold/message"
)

// A Dialect is how an agent encodes calls and answers.
type Dialect struct {
	Name string
	// Wait is the default time for an approval. It is shorter than the agent's limit for hooks.
	Wait time.Duration

	events []string                                  // other events are denied
	adapt  func(event string, fields fields) fields  // converts fields to the usual ones; may be nil
	answer func(event string, deny string) (out any) // deny is "" to allow; nil prints nothing
}

// Call is a call that an agent is about to make.
type Call struct {
	ID      string // may be ""
	Tool    string
	Dir     string // absolute working directory of the agent
	Session string
	Agent   string          // "": Judge.Program
	Input   json.RawMessage // an object
}

// Answer is the output and exit code of the hook.
type Answer struct {
	Stdout []byte
	Stderr string
	Code   int
}

// denied is the exit code that denies for all of these agents, whatever the output.
const denied = 2

// Judge lets a daemon decide on calls.
type Judge struct {
	Program string // name of the agent in records
	Dial    func(ctx context.Context) (*client.Client, error)
	Wait    time.Duration // limit for approvals
}

// mostLate is how much longer than Judge.Wait an answer takes. Some agents run the call if the hook takes longer than
// their limit, whatever the reason.
const mostLate = 3 * time.Second

// Answer reads one call from in and returns the answer. dir is the default working directory.
func (d Dialect) Answer(ctx context.Context, j Judge, dir string, in io.Reader) Answer {
	answered := make(chan Answer, 1)
	// Ends with the answer or, if that comes too late, with the program.
	go func() { answered <- d.decide(ctx, j, dir, in) }()
	done := ctx.Done()
	for late := time.After(j.Wait + mostLate); ; {
		select {
		case a := <-answered:
			return a
		case <-done:
			done, late = nil, time.After(mostLate)
		case <-late:
			return d.write("", errors.New("toold took too long to read or decide the call, so it is denied"))
		}
	}
}

func (d Dialect) decide(ctx context.Context, j Judge, dir string, in io.Reader) Answer {
	event, c, err := d.read(dir, in)
	if err != nil {
		err = fmt.Errorf("toold cannot read what %s asks: %w; the call is denied", d.Name, err)
	} else {
		err = j.Decide(ctx, c)
	}
	return d.write(event, err)
}

func (d Dialect) write(event string, deny error) (a Answer) {
	reason := ""
	if deny != nil {
		reason = deny.Error()
		a.Stderr, a.Code = reason+"\n", denied
	}
	out := d.answer(event, reason)
	if out == nil {
		return a
	}
	text, err := json.Marshal(out)
	if err != nil { // cannot happen, since out has only strings
		return Answer{Stderr: err.Error() + "\n", Code: denied}
	}
	a.Stdout = append(text, '\n')
	return a
}

const maxEvent = 16 << 20 // as the daemon's limit for frames

func members(in io.Reader) (fields, error) {
	text, err := io.ReadAll(io.LimitReader(in, maxEvent+1))
	switch {
	case err != nil:
		return nil, err
	case len(text) > maxEvent:
		return nil, errors.New("it is too long")
	case !utf8.Valid(text): // decoding would change the names of files
		return nil, errors.New("it is not in UTF-8")
	case !json.Valid(text):
		return nil, errors.New("it is no JSON")
	}
	return split(text)
}

func (d Dialect) read(own string, in io.Reader) (event string, c Call, err error) {
	f, err := members(in)
	if err != nil {
		return "", c, err
	}
	event = f.text("hookeventname", "eventtype", "event")
	if !slices.Contains(d.events, event) {
		return event, c, fmt.Errorf("the event %q is none of %s", event, strings.Join(d.events, ", "))
	}
	if d.adapt != nil {
		f = d.adapt(event, f)
	}
	dir, err := f.onlyText("cwd", "workingdirectory", "workingdir")
	if err != nil {
		return event, c, err
	}
	c = Call{
		ID: f.text("tooluseid", "toolcallid"), Tool: f.text("toolname"), Dir: cmp.Or(dir, own),
		Session: f.text("sessionid", "conversationid"), Input: f["toolinput"],
	}
	// toold letta may receive the same call: agent and id make it one call. It changes the arguments of tools that
	// start agents, so those calls remain separate.
	if d.Name == "letta" && kindOf(c.Tool) != startsAgent {
		c.Agent = f.text("agentid")
	}
	var object map[string]json.RawMessage
	switch {
	case c.Tool == "":
		err = errors.New("tool_name is missing")
	case !utf8.ValidString(c.Dir): // encoding as JSON would change it
		err = fmt.Errorf("the directory %q is not in UTF-8", c.Dir)
	case !filepath.IsAbs(c.Dir):
		err = fmt.Errorf("the directory %q is not absolute", c.Dir)
	case json.Unmarshal(c.Input, &object) != nil || object == nil:
		err = errors.New("tool_input is no object")
	}
	return event, c, err
}

// recent reports whether a decision with this date may be about the same call: two hooks of an agent, or toold letta
// and a hook, may ask. Some agents restart their ids in each session.
func recent(date string) bool {
	const longest = time.Minute
	at, err := time.Parse(time.RFC3339, date)
	return err == nil && time.Since(at).Abs() < longest
}

// Own returns an error if a decision that allows may be for another call with the same id, agent and arguments.
func (c Call) Own(ctx context.Context, daemon *client.Client, ret message.ToolReturn) error {
	if ret.Replayed && !recent(ret.Date) {
		return fmt.Errorf("the call %s was decided before, and an agent runs a call once, so it is denied; make it again", c.ID)
	}
	if c.ID == "" || c.Session == "" {
		return nil
	}
	calls, err := daemon.ListCalls(ctx, c.ID, true)
	if err != nil {
		return fmt.Errorf("toold cannot say of which session the decided call %s is, so it is denied: %w", c.ID, err)
	}
	for _, of := range calls {
		mine := of.CallID == c.ID && of.AgentID == c.Agent
		if mine && !sameSession(of.ConversationID, c.Session) {
			return fmt.Errorf("a call %s of the session %s was decided, and this one is of the session %s, so it is denied; make it again", c.ID, of.ConversationID, c.Session)
		}
	}
	return nil
}

// sameSession reports whether two names may belong to one session. Either may be unknown or a list, as from the plugin
// of Claude Code. In Letta a session has both an id and a name.
func sameSession(a, b string) bool {
	if slices.Contains([]string{"", "default"}, a) || b == "default" {
		return true
	}
	split := func(r rune) bool { return r == ',' || r == ' ' }
	list := strings.FieldsFunc(b, split)
	return slices.ContainsFunc(strings.FieldsFunc(a, split), func(id string) bool { return slices.Contains(list, id) })
}

// Decide lets the daemon decide on a call. It may wait for approval. An error denies the call.
func (j Judge) Decide(ctx context.Context, c Call) error {
	waiting, cancel := context.WithTimeout(ctx, j.Wait)
	defer cancel()
	daemon, err := j.Dial(waiting)
	if refused, is := errors.AsType[*message.Error](err); is {
		return errors.New(refused.Message)
	}
	if err != nil {
		return fmt.Errorf("toold cannot be reached, so the call is denied: %w", err)
	}
	defer daemon.Close()
	c.Agent = cmp.Or(c.Agent, j.Program)
	id := c.ID
	if id == "" {
		id = message.NewID("hook")
	}
	ret, err := daemon.Call(waiting, client.Call{ID: id, Tool: "judge", Arguments: Arguments(j.Program, c), AgentID: c.Agent, ConversationID: c.Session}, client.Events{})
	if err == nil {
		if ret.Status != "success" || ret.ErrorType != nil {
			return errors.New(strings.TrimPrefix(ret.Result, "Error: "))
		}
		return c.Own(waiting, daemon, ret)
	}
	if waiting.Err() == nil {
		return fmt.Errorf("toold did not decide the call, so it is denied: %w", err)
	}
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), mostLate-time.Second)
	defer cancel()
	// If this fails, the daemon cancels the call after limits.linger.
	_ = daemon.Stop(stopping, id, j.Program+" does not wait for the decision any more")
	if ctx.Err() != nil {
		return fmt.Errorf("the wait for a decision ended, so the call is denied: %w", context.Cause(ctx))
	}
	return fmt.Errorf("no one decided the call within %s, so it is denied. Do not repeat it unasked: tell the user what you wanted to do", j.Wait)
}
