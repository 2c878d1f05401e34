package console

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/toold/toold/internal/describe"
	"github.com/toold/toold/internal/dispatch"
	"github.com/toold/toold/internal/display"
	"github.com/toold/toold/message"
)

// callScreen formats the events of calls as lines. Each call has a letter. watcher.mu guards it.
type callScreen struct {
	calls      map[callKey]*watchedCall
	listed     map[callKey]string // commands of calls whose requests preceded the connection
	lastNumber int
	lastCaller string

	paused        bool // output would scroll the question away: it is held
	holding       []*watchedCall
	heldBytes     int // of them
	windowStart   time.Time
	linesInWindow int // lines shown since then
}

const (
	maxLinesPerSecond = 100     // of output are shown
	maxHeldLines      = 100     // of output are held of each call
	maxHeldBytes      = 1 << 20 // of all calls: afterwards no output is held
)

// allowLine counts a line of output, and reports whether it may be shown, now or after the answer.
func (c *watchedCall) allowLine() bool {
	s := c.screen
	if s.paused {
		c.heldLines++
		return c.heldLines <= maxHeldLines && s.heldBytes < maxHeldBytes
	}
	if now := time.Now(); now.Sub(s.windowStart) >= time.Second {
		s.windowStart, s.linesInWindow = now, 0
	}
	s.linesInWindow++
	return s.linesInWindow <= maxLinesPerSecond
}

// hold keeps the text of an event until the answer if it has output, or follows output that is held. It returns what is
// shown now.
func (c *watchedCall) hold(topic, text string) string {
	s := c.screen
	mayHold := s.paused && s.heldBytes < maxHeldBytes
	follows := c.held != "" || topic == message.TopicOutput
	if text == "" || !mayHold || !follows {
		return text
	}
	if c.held == "" {
		s.holding = append(s.holding, c)
	}
	c.held += text
	s.heldBytes += len(text)
	return ""
}

// release returns what was held.
func (s *callScreen) release() (text string) {
	for _, c := range s.holding {
		text += c.held + c.hiddenNotice()
		c.held = ""
	}
	for _, c := range s.calls {
		c.heldLines = 0
	}
	s.holding, s.heldBytes = nil, 0
	return text
}

type callKey struct{ client, agent, id string }

type watchedCall struct {
	screen  *callScreen
	id      string
	letter  string
	decided bool              // the decision was shown
	partial map[string][]byte // an unfinished line, by stream
	hidden  int               // lines that are not shown

	held      string // shown after the answer
	heldLines int    // of output, also those that were too many
}

// maxPartialLine limits an unfinished line, in bytes.
const maxPartialLine = 8 << 10

func (w *watcher) handleEvent(e message.SubscriptionEvent) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if e.Seq > 0 {
		w.subscription.After = &e.Seq
	}
	switch {
	case !w.isOf(e.Client, e.AgentID):
	case e.Topic == message.TopicQuestion:
		withEvent(e, w.showRequest)
	case e.Topic == message.TopicAnswer:
		withEvent(e, w.showResolution)
	case w.JSON:
		_ = w.Emit(e)
	default:
		_ = w.Show(w.calls.render(e))
	}
}

// withEvent decodes the frame of an event. It ignores one that cannot be decoded.
func withEvent[T any](e message.SubscriptionEvent, show func(T)) {
	var v T
	if json.Unmarshal(e.Event, &v) == nil {
		show(v)
	}
}

func (s *callScreen) render(e message.SubscriptionEvent) (text string) {
	var about callFrame
	if json.Unmarshal(e.Event, &about) != nil {
		return ""
	}
	name := callKey{e.Client, e.AgentID, cmp.Or(about.CallID, about.ToolCall.ID)}
	c := s.calls[name]
	switch {
	case c != nil:
	case e.Topic == message.TopicDecision:
		return "" // its call has ended, and was shown with its return
	default:
		c = s.add(name)
		text = c.letter + "  " + about.commandLine(s.listed[name]) + "\n" + s.callerLine(e)
	}
	switch e.Topic {
	case message.TopicDecision:
		withEvent(e, func(d message.PolicyDecision) { text += c.decisionLine(d.Action, d.Rule, d.Reason) })
	case message.TopicWaiting:
		text += c.flush() + c.labelled("waits for input")
	case message.TopicOutput:
		withEvent(e, func(d message.OutputDelta) { text += c.outputLines(d) })
	case message.TopicReturn:
		delete(s.calls, name)
		withEvent(e, func(r message.ToolReturn) {
			if d := r.Decision; d != nil && !c.decided {
				text += c.decisionLine(d.Action, d.Rule, d.Reason)
			}
			text += c.flush() + c.labelled("%s", returnText(r))
		})
	}
	return c.hold(e.Topic, text)
}

// list records the calls that run when a connection begins.
func (s *callScreen) list(running []message.CallInfo) {
	s.listed = map[callKey]string{}
	for _, c := range running {
		s.listed[callKey{c.Client, c.AgentID, c.CallID}] = strings.TrimSpace(c.ToolName + " " + c.Preview)
	}
}

// callerLine returns a line with the caller, or "" if that is still the same.
func (s *callScreen) callerLine(e message.SubscriptionEvent) string {
	from := describe.Asker(message.Asker{Client: e.Client, AgentID: e.AgentID, ConversationID: e.ConversationID}, "   ")
	if from == s.lastCaller {
		return ""
	}
	s.lastCaller = from
	return from
}

func (c *watchedCall) decisionLine(action, rule, reason string) string {
	c.decided = true
	if action == "allow" || reason == "" {
		return c.labelled("%s, %s", action, describe.Rule(rule))
	}
	return c.labelled("%s: %s", action, reason)
}

// callFrame has the fields that frames about calls may have.
type callFrame struct {
	CallID   string `json:"tool_call_id"`
	ToolName string `json:"tool_name"`
	ToolCall struct {
		ID        string          `json:"tool_call_id"`
		Name      string          `json:"name"`
		ToolName  string          `json:"tool_name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"tool_call"`
}

// commandLine returns the tool and its command, which only a request contains. listed is the command from another
// source, or "".
func (a callFrame) commandLine(listed string) string {
	tool := cmp.Or(a.ToolCall.ToolName, a.ToolCall.Name)
	if tool == "" {
		return display.Short(cmp.Or(listed, strings.TrimSpace(a.ToolName+" "+a.CallID)))
	}
	arguments := a.ToolCall.Arguments
	var inString string
	if json.Unmarshal(arguments, &inString) == nil {
		arguments = json.RawMessage(inString)
	}
	return display.Short(dispatch.CallText(tool, arguments))
}

// add assigns the next letter: A to Z, then AA.
func (s *callScreen) add(name callKey) *watchedCall {
	if s.calls == nil {
		s.calls = map[callKey]*watchedCall{}
	}
	s.lastNumber++
	letter := ""
	for n := s.lastNumber; n > 0; n = (n - 1) / 26 {
		letter = string(rune('A'+(n-1)%26)) + letter
	}
	c := &watchedCall{screen: s, id: name.id, letter: letter, partial: map[string][]byte{}}
	s.calls[name] = c
	return c
}

func (c *watchedCall) labelled(format string, args ...any) string {
	return c.letter + "  " + display.Short(fmt.Sprintf(format, args...)) + "\n"
}

func (c *watchedCall) outputLines(d message.OutputDelta) (text string) {
	data := []byte(d.Data)
	if d.DataB64 != "" {
		data, _ = base64.StdEncoding.DecodeString(d.DataB64)
	}
	if d.Gap != nil {
		text = c.flush() + c.labelled("(%d bytes came too fast to be shown; toold output prints them)", d.Gap.To-d.Gap.From)
	}
	data = append(c.partial[d.Stream], data...)
	for {
		end := bytes.IndexByte(data, '\n') + 1
		if end == 0 && len(data) < maxPartialLine {
			c.partial[d.Stream] = data
			return text
		}
		if end == 0 {
			end = maxPartialLine
		}
		text += c.outputLine(d.Stream, data[:end])
		data = data[end:]
	}
}

func (c *watchedCall) flush() (text string) {
	for _, stream := range []string{"stdout", "stderr"} {
		if len(c.partial[stream]) > 0 {
			text += c.outputLine(stream, c.partial[stream])
		}
	}
	clear(c.partial)
	return text + c.hiddenNotice()
}

func (c *watchedCall) hiddenNotice() string {
	left := c.hidden
	if c.hidden = 0; left == 0 {
		return ""
	}
	return c.labelled("(%d lines are not shown; toold output %s prints them)", left, display.Operand(c.id))
}

// outputLine returns a line of output without control sequences except colours, and of a progress bar only the last
// state.
func (c *watchedCall) outputLine(stream string, line []byte) string {
	if !c.allowLine() {
		c.hidden++
		return ""
	}
	before := c.hiddenNotice()
	var shown bytes.Buffer
	screen := display.NewScreen(&shown)
	_, _ = screen.Write(bytes.TrimRight(line, "\r\n"))
	_ = screen.Close()
	states := strings.Split(shown.String(), display.Redrawn)
	mark := " | "
	if stream == "stderr" {
		mark = " ! "
	}
	return before + c.letter + mark + display.Mark(states[len(states)-1]) + "\n"
}

func returnText(r message.ToolReturn) string {
	first, _, _ := strings.Cut(r.Result, "\n")
	took := time.Duration(r.DurationMS) * time.Millisecond
	if took > time.Second {
		took = took.Round(100 * time.Millisecond)
	}
	switch {
	case r.Background != nil:
		return "runs on in the background as " + r.Background.CallID
	case r.ErrorType != nil:
		return fmt.Sprintf("ended, %s: %s", *r.ErrorType, first)
	case r.Signal != nil:
		return fmt.Sprintf("ended by %s after %v", *r.Signal, took)
	case r.ExitCode != nil:
		return fmt.Sprintf("ended with exit code %d after %v", *r.ExitCode, took)
	case r.Status == "error":
		return "ended, " + first
	}
	return fmt.Sprintf("ended, %s, after %v", describe.Status(r.ToolName, r.Status), took)
}
