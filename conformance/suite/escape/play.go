//go:build linux

package escape

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/toold/toold/conformance/suite"
)

// player plays one case inside its world.
type player struct {
	w       World
	f       *fixture
	target  suite.Target
	session suite.Session     // nil: it is not started
	vars    map[string]string // what the scripts of the case see
	last    suite.Result
}

// play plays a case and judges it.
func play(ctx context.Context, w World, target suite.Target) Outcome {
	limit, cancel := context.WithTimeout(ctx, 15*time.Minute)
	defer cancel()
	p := &player{w: w, target: target, vars: map[string]string{"STARTED": "0", "STATUS": "", "RC": "", "GROWTH": "0", "INJECTED": "0", "OTHERTTY": "0"}}
	got, err := p.play(limit)
	inapt, isInapt := errors.AsType[suite.NotApplicable](err)
	switch {
	case isInapt:
		got = Outcome{Verdict: "not applicable", Why: string(inapt)}
	case err != nil:
		got = Outcome{Verdict: "broken", Why: "cannot be played: " + err.Error()}
	}
	if got.Bad() {
		if len(p.last.Return) > 0 {
			got.Output += fmt.Sprintf("\nreturn: %.4000s", p.last.Return)
		}
		if s, ok := p.session.(interface{ Scene() string }); ok {
			got.Output += "\n" + s.Scene()
		}
	}
	if p.session == nil {
		return got
	}
	if err := p.session.Close(); err != nil && got.Verdict != "escaped" {
		got = Outcome{Verdict: "broken", Why: err.Error(), Output: got.Output}
	}
	return got
}

func (p *player) play(ctx context.Context) (Outcome, error) {
	var err error
	if p.f, err = newFixture(ctx, p.w); err != nil {
		return Outcome{}, fmt.Errorf("the fixture: %w", err)
	}
	c := p.w.Case
	late := strings.HasPrefix(c.ID, "tm-") // the setup changes what a warm shell was started with
	if !late {
		if err := p.setup(ctx); err != nil {
			return Outcome{}, err
		}
	}
	if why := p.start(ctx); why != nil {
		if !c.mayRefuse() {
			return Outcome{}, why
		}
		p.vars["STATUS"] = "error"
		return p.judge(ctx, "", why.Error())
	}
	p.vars["STARTED"] = "1"
	if late {
		if err := p.setup(ctx); err != nil {
			return Outcome{}, err
		}
	}
	if err := p.startBackground(ctx); err != nil {
		return Outcome{}, err
	}
	tool, text, during, err := p.runCalls(ctx)
	if err != nil {
		return Outcome{}, err
	}
	p.setVars()
	if why := c.didNotRun(tool, p.last); why != "" {
		return Outcome{Verdict: "broken", Why: why, Output: lastOf(text)}, nil
	}
	return p.judge(ctx, during, text)
}

// mayRefuse reports whether the target may refuse to start in a case.
func (c Case) mayRefuse() bool {
	return strings.HasPrefix(c.ID, "dg-") || c.Command == "daemon start"
}

// setup runs the script that comes before the call.
func (p *player) setup(ctx context.Context) error {
	out, code := p.f.runOutside(ctx, translate(p.w.Case.Setup, setupPhrases()), p.vars)
	if code != 0 {
		return fmt.Errorf("the setup ended with %d: %s", code, out)
	}
	return nil
}

// start starts the target and runs a command, so that warm shells exist before the case begins.
func (p *player) start(ctx context.Context) (err error) {
	profile := p.w.Case.Profile
	if p.w.Profile != "" {
		profile = p.w.Profile
	}
	scratch := filepath.Join(p.f.base, "target")
	if err := os.Mkdir(scratch, 0o755); err != nil {
		return err
	}
	p.session, err = p.target.Open(ctx, suite.Workspace{
		Dir: p.f.ws, Home: p.f.home, Scratch: scratch, Profile: profile, Window: p.f.slave,
		Env: []string{"SERVICE_API_KEY=ENVSECRET", "DAEMONENV=1", "GIT_CONFIG_NOSYSTEM=1"},
	})
	if refused, ok := errors.AsType[*suite.Refusal](err); ok {
		p.vars["RC"] = fmt.Sprint(refused.Exit)
	}
	if err == nil {
		_, err = p.session.Run(ctx, suite.Command{Script: "true JOURNALSECRET", Dir: p.f.ws, Terminal: "off"})
	}
	return err
}

// startBackground starts the background call of the case, if any, and waits until it has made the file beside-ready in
// the workspace.
func (p *player) startBackground(ctx context.Context) error {
	c := p.w.Case
	if c.Beside == "" {
		return nil
	}
	if _, err := p.call(ctx, suite.Call{
		Tool: "bash", Conversation: "beside",
		Arguments: map[string]any{"command": p.f.places.Replace(c.Beside), "background": true},
	}); err != nil {
		return fmt.Errorf("the call beside: %w", err)
	}
	if out, code := p.f.runOutside(ctx, `for i in {1..1200}; do [ -e @WS@/beside-ready ] && exit; sleep 0.05; done; exit 1`, nil); code != 0 {
		return fmt.Errorf("the call beside is not ready: %s", out)
	}
	return nil
}

// runCalls makes the calls of the case. A check that connects to the call runs while it listens; during is its verdict.
func (p *player) runCalls(ctx context.Context) (tool, text, during string, err error) {
	calls, times, err := p.f.calls(p.w.Case)
	if err != nil {
		return "", "", "", err
	}
	opened := make(chan struct{})
	looked := make(chan string, 1)
	var live func([]byte)
	open := false
	if c := p.w.Case; strings.Contains(c.MustNotHappen, "/dev/tcp/") {
		// Ends with the check, which begins when the call prints that it listens, or has ended.
		go func() {
			<-opened
			verdict, _ := p.check(ctx, c.MustNotHappen)
			looked <- verdict
		}()
		live = func(data []byte) {
			if !open && strings.Contains(string(data), "listening") {
				open = true
				close(opened)
			}
		}
	} else {
		looked <- ""
	}
	tool, text, err = p.repeatCalls(ctx, calls, times, live)
	if !open {
		close(opened)
	}
	return tool, text, <-looked, err
}

// repeatCalls makes the calls the given number of times, and with more than one further until one ran: attempts that
// lose their own race are refused and do not count.
func (p *player) repeatCalls(ctx context.Context, calls []suite.Call, times int, live func([]byte)) (tool, text string, err error) {
	ran := false
	for try := 0; try < times || times > 1 && !ran; try++ {
		for _, call := range calls {
			call.Live, call.Conversation = live, p.w.Case.Conversation
			last, err := p.call(ctx, call)
			if err != nil {
				return "", "", err
			}
			text += last.Stdout + last.Stderr + last.Text + "\n"
			if done := p.w.Case.didNotRun(call.Tool, last) == ""; done || try == 0 {
				tool, p.last, ran = call.Tool, last, ran || done
			}
		}
	}
	return tool, text, nil
}

// call makes a call, or runs its command where there are no calls.
func (p *player) call(ctx context.Context, c suite.Call) (suite.Result, error) {
	if s, ok := p.session.(suite.Caller); ok {
		return s.Call(ctx, c)
	}
	if c.Tool != "bash" || c.Conversation != "" || c.Arguments["background"] != nil {
		return suite.Result{}, suite.NotApplicable("it needs tools other than commands, or calls in the background")
	}
	command := suite.Command{Script: fmt.Sprint(c.Arguments["command"]), Dir: p.f.ws, Terminal: "off", Timeout: 2 * time.Minute, Live: c.Live}
	if dir, ok := c.Arguments["cwd"].(string); ok {
		command.Dir = dir
	}
	r, err := p.session.Run(ctx, command)
	if _, inapt := errors.AsType[suite.NotApplicable](err); err != nil && !inapt {
		return suite.Result{Exit: -1, Text: err.Error()}, nil // it did not run
	}
	return r, err
}

// setVars passes the result of the last call to the scripts.
func (p *player) setVars() {
	p.vars["STATUS"] = "error"
	if p.last.Exit == 0 {
		p.vars["STATUS"] = "success"
	}
	if p.last.Exit >= 0 {
		p.vars["RC"] = fmt.Sprint(p.last.Exit)
	}
	maps.Copy(p.vars, p.last.Vars)
	os.WriteFile(p.f.ret, p.last.Return, 0o644)
	if input := pending(p.f.slave); input != "" || strings.Contains(p.last.Stdout+p.last.Text, "TIOCSTI: OK") {
		p.vars["INJECTED"] = "1"
	}
	if strings.Contains(pending(p.f.window), "HOSTTTY") {
		p.vars["OTHERTTY"] = "1"
	}
}

// didNotRun returns why the command did not run, "" if it ran: an attack that never ran was not blocked.
func (c Case) didNotRun(tool string, r suite.Result) string {
	if tool != "bash" || c.mayRefuse() {
		return ""
	}
	ran := r.Exit >= 0 || r.Signal != "" || r.TimedOut
	if !ran {
		return fmt.Sprintf("the command did not run: %.300s", r.Text)
	}
	if (r.Exit == 126 || r.Exit == 127) && strings.HasPrefix(c.Command, "@E@ ") {
		return fmt.Sprintf("the attack could not be started: %.300s", r.Text+r.Stderr)
	}
	return ""
}

// logDelay is how long the servers of a world may take to log a connection.
const logDelay = 250 * time.Millisecond

// judge runs the checks of the case.
func (p *player) judge(ctx context.Context, during, text string) (Outcome, error) {
	if err := os.WriteFile(p.f.output, []byte(text), 0o644); err != nil {
		return Outcome{}, err
	}
	c := p.w.Case
	got := Outcome{Verdict: "usable", Output: lastOf(text)}
	if c.MustNotHappen != "" {
		verdict, why := p.check(ctx, c.MustNotHappen)
		if verdict == "false" && strings.Contains(c.MustNotHappen, "@LOG@") && suite.Sleep(ctx, logDelay) == nil {
			verdict, why = p.check(ctx, c.MustNotHappen)
		}
		switch {
		case verdict == "unknown":
			return Outcome{Verdict: "not applicable", Why: why}, nil
		case verdict == "true" || during == "true":
			return Outcome{Verdict: "escaped", Why: c.Why, Output: got.Output}, nil
		}
		got.Verdict = "blocked"
	}
	if c.MustHappen != "" {
		verdict, why := p.check(ctx, c.MustHappen)
		switch verdict {
		case "unknown":
			return Outcome{Verdict: "not applicable", Why: why}, nil
		case "false":
			return Outcome{Verdict: "broken", Why: c.Why, Output: got.Output}, nil
		}
	}
	return got, nil
}

// check runs a check of the case outside. The verdict is true, false, or unknown if it is no script.
func (p *player) check(ctx context.Context, text string) (verdict, why string) {
	text = translate(text, checkPhrases())
	if out, code := p.f.runOutside(ctx, "bash -n -c "+suite.Quote(p.f.places.Replace(text)), p.vars); code != 0 {
		return "unknown", fmt.Sprintf("nobody knows how to check %q: %s", text, out)
	}
	out, code := p.f.runOutside(ctx, text, p.vars)
	switch code {
	case 0:
		return "true", ""
	case 126, 127:
		return "unknown", fmt.Sprintf("nobody knows how to check %q: %s", text, out)
	}
	return "false", ""
}

func lastOf(text string) string {
	if len(text) > 600 {
		return "…" + text[len(text)-600:]
	}
	return text
}
