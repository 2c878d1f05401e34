//go:build linux

package execution

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/toold/toold/conformance/suite"
	"github.com/toold/toold/internal/lazyregexp"
)

// Case is one line of a file of exec cases.
type Case struct {
	ID, Group, Title, Tool, Why string

	Own string // why it is about toold only; empty: it is about any implementation

	Arguments map[string]json.RawMessage
	Options   Options
	Expect    map[string]json.RawMessage // see runChecks and streamChecks

	Auto          bool            // not used: every case is played
	PeersMeasured json.RawMessage `json:"peers_measured"` // not used
	MustFail      string          `json:"must_fail"`      // only in exec-false.jsonl: the reason with which the case fails
}

// Options is how a case is played. Times named …_at_ms count from when the client learns that the command runs.
type Options struct {
	TTY       string            `json:"tty"` // off, single, split; split_pipe is played as split
	TimeoutMS *int64            `json:"timeout_ms"`
	CWD       string            `json:"cwd"`
	Env       map[string]string `json:"env"`     // what the configuration sets
	Profile   string            `json:"profile"` // agent (as it is by default), or one of the sandbox
	Leftover  string            `json:"leftover"`

	Repeat   int       `json:"repeat"`
	Parallel int       `json:"parallel"`
	Before   *Before   `json:"before"`
	Then     *FollowUp `json:"then"`
	Slow     bool      `json:"slow"`

	SendTimes   int    `json:"send_times"`
	ReuseIDOf   string `json:"reuse_id_of"`
	CancelFirst bool   `json:"cancel_before_start"`

	CancelAtMS  *int   `json:"cancel_at_ms"`
	CancelTimes int    `json:"cancel_times"`
	SignalAtMS  *int   `json:"signal_at_ms"`
	Signal      string `json:"signal"` // INT unless it is named
	StdinAtMS   *int   `json:"stdin_at_ms"`
	Stdin       string `json:"stdin"`
	StdinEOF    *bool  `json:"stdin_eof"` // after Stdin; yes unless it says no
	ResizeAtMS  *int   `json:"resize_at_ms"`
	ResizeTo    [2]int `json:"resize_to"` // rows, columns

	Stream           *bool  `json:"stream"`             // false: the client wants no live output
	ClientReadsAfter string `json:"client_reads_after"` // it reads nothing until the workspace holds this file
	DisconnectAtMS   *int   `json:"disconnect_at_ms"`
	ReconnectAfterMS int    `json:"reconnect_after_ms"`

	KillDaemonAtMS *int              `json:"kill_daemon_at_ms"`
	StopDaemonAtMS *int              `json:"stop_daemon_at_ms"`
	RestartDaemon  bool              `json:"restart_daemon"`
	StepClockAtMS  *int              `json:"step_clock_at_ms"`
	DaemonEnv      map[string]string `json:"daemon_env"`
	DaemonStart    string            `json:"daemon_start"`
	HomeWithBashrc string            `json:"home_with_bashrc"`

	GraceMS        int      `json:"grace_ms"`
	MaxOutputBytes int      `json:"max_output_bytes"`
	MaxProcesses   int      `json:"max_processes"`
	Redact         []string `json:"redact"`
}

// Before is a call that comes before each repetition.
type Before struct {
	Tool    string `json:"tool"`
	Path    string `json:"path"`
	Content string `json:"content"`
	Mode    string `json:"mode"` // with which the file lies there before the first call
	Command string `json:"command"`
}

// FollowUp is a command that the same daemon runs afterwards, and what is
// expected of it.
type FollowUp struct {
	Command string
	Expect  map[string]json.RawMessage
}

// UnmarshalJSON reads the command and keeps the rest as what is expected of it.
func (f *FollowUp) UnmarshalJSON(text []byte) error {
	if err := json.Unmarshal(text, &f.Expect); err != nil {
		return err
	}
	command, ok := f.Expect["command"]
	if !ok {
		return fmt.Errorf("then has no command")
	}
	delete(f.Expect, "command")
	return json.Unmarshal(command, &f.Command)
}

// Line is a line of a file. A case that cannot be read fails.
type Line struct {
	Place string // file:line
	Case  Case
	Err   error
}

// Read reads files of exec cases.
func Read(paths ...string) ([]Line, error) { return suite.ReadLines(readExecCase, paths) }

// readExecCase reads one case. Unknown fields are errors: a case that is half understood would pass for the wrong reason.
func readExecCase(place string, text []byte) Line {
	l := Line{Place: place}
	var head struct{ ID string }
	if l.Err = json.Unmarshal(text, &head); l.Err != nil {
		l.Case.ID = place
		return l
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	l.Err = d.Decode(&l.Case)
	if l.Case.ID = head.ID; l.Case.ID == "" {
		l.Case.ID = place
	}
	if l.Err == nil {
		l.Err = l.Case.complete()
	}
	return l
}

// complete generates long arguments and rejects a case with expectations that have no check.
func (c *Case) complete() error {
	for name, value := range c.Arguments {
		target, ok := strings.CutSuffix(name, "_generator")
		if !ok {
			continue
		}
		var g struct {
			Prefix, Repeat, Suffix string
			Count                  int
		}
		if err := json.Unmarshal(value, &g); err != nil {
			return err
		}
		text, err := json.Marshal(g.Prefix + strings.Repeat(g.Repeat, g.Count) + g.Suffix)
		if err != nil {
			return err
		}
		delete(c.Arguments, name)
		c.Arguments[target] = text
	}
	if c.Tool == "" || len(c.Expect) == 0 {
		return fmt.Errorf("the case has no tool or expects nothing")
	}
	expected := slices.Collect(maps.Keys(c.Expect))
	if c.Options.Then != nil {
		expected = slices.AppendSeq(expected, maps.Keys(c.Options.Then.Expect))
	}
	for _, name := range expected {
		if !known(name) {
			return fmt.Errorf("nobody knows how to check %q", name)
		}
	}
	return nil
}

// Command is the script of the case.
func (c *Case) Command() string {
	var s string
	json.Unmarshal(c.Arguments["command"], &s)
	return s
}

// Mark changes a case so that it can be played beside others. Its long sleeps carry its mark, which identifies its
// processes. Its files in /tmp are in its workspace instead, since commands have a /tmp of their own. Its variables get
// another prefix than the one that toold reserves.
func (c *Case) Mark(mark, workspace string) error {
	c.Arguments = maps.Clone(c.Arguments)
	if text, ok := c.Arguments["command"]; ok {
		c.Arguments["command"] = sleepPattern().ReplaceAllFunc(text, func(found []byte) []byte {
			if longSleep(string(found)) {
				return append(slices.Clip(found), mark...)
			}
			return found
		})
	}
	replacer := strings.NewReplacer("/tmp/toold-", workspace+"/toold-", "TOOLD_TEST_", "CASE_TEST_")
	return errors.Join(
		Rewrite(&c.Arguments, replacer), Rewrite(&c.Expect, replacer),
		Rewrite(&c.Options.Before, replacer), Rewrite(&c.Options.Env, replacer),
	)
}

// Rewrite replaces text in a part of a case.
func Rewrite[T any](part *T, r *strings.Replacer) error {
	text, err := json.Marshal(*part)
	if err != nil {
		return err
	}
	var changed T
	if err := json.Unmarshal([]byte(r.Replace(string(text))), &changed); err != nil {
		return err
	}
	*part = changed
	return nil
}

// sleepPattern finds a command that sleeps.
var sleepPattern = lazyregexp.New(`\bsleep (\d+\.\d+)`)

// longSleep reports whether a sleep is so long that a case looks for it afterwards.
func longSleep(text string) bool {
	d, err := time.ParseDuration(strings.TrimPrefix(text, "sleep ") + "s")
	return err == nil && d > time.Minute
}

// Expects reports whether a case expects something of which a name begins so.
func (c *Case) Expects(prefixes ...string) bool {
	for name := range c.Expect {
		if slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(name, p) }) {
			return true
		}
	}
	return false
}

// Timeout is the timeout of a call in ms. It is long enough for a busy machine unless the case is about timing.
func (c *Case) Timeout(ms int64) int64 {
	acted := c.Options.CancelAtMS != nil || c.Options.SignalAtMS != nil || c.Options.StepClockAtMS != nil
	if ms <= 0 || acted || string(c.Expect["status"]) == `"timeout"` {
		return ms
	}
	return max(ms, suite.Patience.Milliseconds())
}
