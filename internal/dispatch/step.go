package dispatch

import "time"

// Step is a part of the time that a call took.
type Step struct {
	Name     string
	From, To time.Time
}

// The names of steps, in their order. A call has only those that it came to.
const (
	StepJudge  = "judge"  // from its arrival to the policy's decision
	StepAsk    = "ask"    // waiting for a person
	StepQueue  = "queue"  // waiting for other calls to end
	StepRun    = "run"    // the tool at work
	StepRecord = "record" // writing the return
)

// stepped notes a step that ends now. It is for the call's goroutine only.
func (c *Call) stepped(name string, from time.Time) {
	c.steps = append(c.steps, Step{name, from, time.Now()})
}

// Steps returns the steps of an ended call. It is for a function given to Observe, while
// that is called with a Final.
func (c *Call) Steps() []Step { return c.steps }

// Received returns when the call came.
func (c *Call) Received() time.Time { return c.born }

// Tool returns the tool's canonical name, or "other" where there is no such tool: nothing
// that a client can choose.
func (c *Call) Tool() string {
	if !c.listed {
		return "other"
	}
	return c.tool
}

// States counts the unanswered calls by their state.
func (d *Dispatcher) States() map[string]int {
	count := map[string]int{}
	for _, c := range d.Find("", "") {
		c.mu.Lock()
		count[c.progress.state]++
		c.mu.Unlock()
	}
	return count
}
