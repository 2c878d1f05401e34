//go:build linux

package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/toold/toold/client"
	"github.com/toold/toold/message"
)

// escapePlayer plays one case inside its world.
type escapePlayer struct {
	job      worldJob
	f        *fixture
	daemon   *daemon
	approver *conn
	agent    *client.Client
	before   int64             // resident memory of the daemon, bytes
	vars     map[string]string // what the scripts of the case see
	ret      []byte            // what the last call returned
}

// playEscape plays a case and judges it.
func playEscape(ctx context.Context, job worldJob) outcome {
	limit, cancel := context.WithTimeout(ctx, 15*time.Minute)
	defer cancel()
	p := &escapePlayer{job: job, vars: map[string]string{"STARTED": "0", "STATUS": "", "RC": "", "GROWTH": "0", "INJECTED": "0", "OTHERTTY": "0"}}
	got, err := p.play(limit)
	if err != nil {
		got = outcome{Verdict: "broken", Why: "cannot be played: " + err.Error()}
	}
	if got.bad() {
		got.Output += fmt.Sprintf("\nreturn: %.4000s\n%s", p.ret, p.daemon.scene())
	}
	if err := p.end(); err != nil && got.Verdict != "escaped" {
		got = outcome{Verdict: "broken", Why: err.Error(), Output: got.Output}
	}
	return got
}

func (p *escapePlayer) play(ctx context.Context) (outcome, error) {
	var err error
	if p.f, err = newFixture(ctx, p.job); err != nil {
		return outcome{}, fmt.Errorf("the fixture: %w", err)
	}
	c := p.job.Case
	late := strings.HasPrefix(c.ID, "tm-") // what changes once a shell waits for its script
	if !late {
		if err := p.setup(ctx); err != nil {
			return outcome{}, err
		}
	}
	if why := p.start(ctx); why != nil {
		if !mayRefuse(c) {
			return outcome{}, why
		}
		p.vars["STATUS"] = "error"
		return p.judge(ctx, "", why.Error())
	}
	p.vars["STARTED"] = "1"
	if late {
		if err := p.setup(ctx); err != nil {
			return outcome{}, err
		}
	}
	if err := p.playBeside(ctx); err != nil {
		return outcome{}, err
	}
	ret, text, during, err := p.act(ctx)
	if err != nil {
		return outcome{}, err
	}
	p.note(ret)
	if why := didNotRun(c, ret); why != "" {
		return outcome{Verdict: "broken", Why: why, Output: lastOf(text)}, nil
	}
	return p.judge(ctx, during, text)
}

// mayRefuse tells whether a case is about what keeps the daemon from starting.
func mayRefuse(c escapeCase) bool {
	return strings.HasPrefix(c.ID, "dg-") || c.Command == "daemon start"
}

// setup runs the script that comes before the call.
func (p *escapePlayer) setup(ctx context.Context) error {
	out, code := p.f.outside(ctx, script(p.job.Case.Setup, wordedSetups()), p.vars)
	if code != 0 {
		return fmt.Errorf("the setup ended with %d: %s", code, out)
	}
	return nil
}

// start starts the daemon and lets it serve a call: its waiting shells are made
// before the case begins.
func (p *escapePlayer) start(ctx context.Context) error {
	s, err := p.f.site(p.job)
	if err != nil {
		return err
	}
	program := p.job.Daemon
	at := filepath.Join(p.f.base, "launch")
	switch setup := p.job.Case.Setup; {
	case strings.HasPrefix(setup, "outer seccomp denies landlock"):
		s.launch = &launcher{dir: at, how: "exec " + quoted(p.job.Escape) + " without-landlock " + quoted(filepath.Join(at, "toold"))}
	case strings.Contains(setup, " with 1024 descriptors"):
		s.launch = &launcher{dir: at, how: "ulimit -n 1024 && exec toold"}
	}
	if p.daemon, err = startDaemon(ctx, program, s); err != nil {
		p.vars["RC"] = refusal(ctx, program, s)
		return err
	}
	answer := approve
	switch {
	case p.job.Case.byName():
		answer = approveOneHost
	case p.job.Case.widens():
		answer = p.approveWidened
	}
	if p.approver, err = dial(ctx, p.daemon, "(approver)", 0, p.daemon.tokens["approver"], answer, func() {}); err != nil {
		return err
	}
	if err := greet(ctx, p.approver); err != nil {
		return err
	}
	if p.agent, err = client.Dial(ctx, client.Options{URL: p.daemon.ws, Token: p.daemon.tokens["agent"]}); err != nil {
		return err
	}
	_, err = p.agent.Call(ctx, client.Call{Tool: "bash", Arguments: map[string]any{"command": "true JOURNALSECRET"}}, client.Events{})
	resetPeak(p.daemon.pid)
	p.before = memory(p.daemon.pid, "VmRSS")
	return err
}

// refusal is the exit status of a daemon that does not start.
func refusal(ctx context.Context, program string, s *site) string {
	cmd, err := s.command(program)
	if err == nil {
		err = cmd.Run()
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return fmt.Sprint(exit.ExitCode())
	}
	return "0"
}

// act makes the calls of the case. A check that looks for an open door runs while
// the door would be open; its output is returned as during.
func (p *escapePlayer) act(ctx context.Context) (ret message.ToolReturn, text, during string, err error) {
	calls, times, err := p.f.calls(p.job.Case)
	if err != nil {
		return ret, "", "", err
	}
	opened := make(chan struct{})
	looked := make(chan string, 1)
	if c := p.job.Case; strings.Contains(c.MustNotHappen, "/dev/tcp/") {
		// Ends with the check, which begins when the call says that it listens, or is over.
		go func() {
			<-opened
			verdict, _ := p.check(ctx, c.MustNotHappen)
			looked <- verdict
		}()
	} else {
		looked <- ""
	}
	open := false
	events := client.Events{Contact: p.noteContact, Output: func(_ message.OutputDelta, data []byte) {
		if !open && strings.Contains(string(data), "listening") {
			open = true
			close(opened)
		}
	}}
	// Of many tries some lose their own race and are refused: those that ran count, and the
	// last try is not made before one has.
	ran := false
	for try := 0; try < times || times > 1 && !ran; try++ {
		for _, call := range calls {
			last, err := p.call(ctx, call, events)
			if err != nil {
				return last, "", "", err
			}
			text += stream(last.Stdout) + stream(last.Stderr) + last.Result + "\n"
			if done := didNotRun(p.job.Case, last) == ""; done || try == 0 {
				ret, ran = last, ran || done
			}
		}
	}
	if !open {
		close(opened)
	}
	return ret, text, <-looked, nil
}

// attackFile is where call puts what the policy would see.
const attackFile = "attack.sh"

// call makes a call. What the policy refuses because it can see it is done again by
// a program into which it cannot see: the question is what the sandbox holds.
func (p *escapePlayer) call(ctx context.Context, c toolCall, events client.Events) (message.ToolReturn, error) {
	ret, err := p.agent.Call(ctx, client.Call{Tool: c.tool, Arguments: c.args, ConversationID: p.job.Case.Conversation}, events)
	if err != nil || c.tool != "bash" || ret.Decision == nil || ret.Decision.Action != "deny" {
		return ret, err
	}
	attack := filepath.Join(p.f.base, attackFile)
	if err := os.WriteFile(attack, []byte(c.args["command"].(string)+"\n"), 0o644); err != nil {
		return ret, err
	}
	c.args["command"] = "exec bash " + attack
	return p.agent.Call(ctx, client.Call{Tool: c.tool, Arguments: c.args}, events)
}

// noteContact writes down a decision on a connection for the scripts.
func (p *escapePlayer) noteContact(d message.ConnectionDecision) {
	line, _ := json.Marshal(d)
	f, err := os.OpenFile(p.f.events, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return
	}
	defer f.Close()
	f.Write(append(line, '\n'))
}

// note writes down what the return says for the scripts.
func (p *escapePlayer) note(ret message.ToolReturn) {
	p.vars["STATUS"] = ret.Status
	if ret.ExitCode != nil {
		p.vars["RC"] = fmt.Sprint(*ret.ExitCode)
	}
	if peak := memory(p.daemon.pid, "VmHWM"); peak > p.before {
		p.vars["GROWTH"] = fmt.Sprint(peak - p.before)
	}
	p.ret, _ = json.Marshal(ret)
	os.WriteFile(p.f.ret, p.ret, 0o644)
	if input := pending(p.f.slave); input != "" || strings.Contains(ret.Result, "TIOCSTI: OK") {
		p.vars["INJECTED"] = "1"
	}
	if strings.Contains(pending(p.f.window), "HOSTTTY") {
		p.vars["OTHERTTY"] = "1"
	}
}

// didNotRun tells why nothing was tried: an attack that never ran was not blocked.
func didNotRun(c escapeCase, ret message.ToolReturn) string {
	if ret.ToolName != "bash" || mayRefuse(c) {
		return ""
	}
	if ret.ExitCode == nil && ret.Signal == nil && !ret.TimedOut && ret.Cause == nil {
		return fmt.Sprintf("the command did not run: %.300s", ret.Result)
	}
	if ret.ExitCode != nil && (*ret.ExitCode == 126 || *ret.ExitCode == 127) && strings.HasPrefix(c.Command, "@E@ ") {
		return fmt.Sprintf("the attack could not be started: %.300s", ret.Result)
	}
	return ""
}

// judge runs the checks of the case.
func (p *escapePlayer) judge(ctx context.Context, during, text string) (outcome, error) {
	if err := os.WriteFile(p.f.output, []byte(text), 0o644); err != nil {
		return outcome{}, err
	}
	c := p.job.Case
	got := outcome{Verdict: "usable", Output: lastOf(text)}
	if c.MustNotHappen != "" {
		verdict, why := p.check(ctx, c.MustNotHappen)
		switch {
		case verdict == "unknown":
			return outcome{Verdict: "not applicable", Why: why}, nil
		case verdict == "true" || during == "true":
			return outcome{Verdict: "escaped", Why: c.Why, Output: got.Output}, nil
		}
		got.Verdict = "blocked"
	}
	if c.MustHappen != "" {
		verdict, why := p.check(ctx, c.MustHappen)
		switch verdict {
		case "unknown":
			return outcome{Verdict: "not applicable", Why: why}, nil
		case "false":
			return outcome{Verdict: "broken", Why: c.Why, Output: got.Output}, nil
		}
	}
	return got, nil
}

// check runs a check of the case outside: true, false, or unknown where it is no
// script.
func (p *escapePlayer) check(ctx context.Context, text string) (verdict, why string) {
	text = script(text, wordedChecks())
	if out, code := p.f.outside(ctx, "bash -n -c "+quoted(p.f.places.Replace(text)), p.vars); code != 0 {
		return "unknown", fmt.Sprintf("nobody knows how to check %q: %s", text, out)
	}
	out, code := p.f.outside(ctx, text, p.vars)
	switch code {
	case 0:
		return "true", ""
	case 126, 127:
		return "unknown", fmt.Sprintf("nobody knows how to check %q: %s", text, out)
	}
	return "false", ""
}

// end ends the daemon; the world ends everything else.
func (p *escapePlayer) end() error {
	if p.agent != nil {
		p.agent.Close()
	}
	if p.approver != nil {
		p.approver.hangUp()
	}
	if p.daemon == nil {
		return nil
	}
	return p.daemon.stop(syscall.SIGTERM)
}

func lastOf(text string) string {
	if len(text) > 600 {
		return "…" + text[len(text)-600:]
	}
	return text
}
