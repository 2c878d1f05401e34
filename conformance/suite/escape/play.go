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
	var inapt suite.NotApplicable
	switch {
	case errors.As(err, &inapt):
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
	late := strings.HasPrefix(c.ID, "tm-") // what changes once a shell waits for its script
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
	if err := p.playBeside(ctx); err != nil {
		return Outcome{}, err
	}
	tool, text, during, err := p.act(ctx)
	if err != nil {
		return Outcome{}, err
	}
	p.note()
	if why := c.didNotRun(tool, p.last); why != "" {
		return Outcome{Verdict: "broken", Why: why, Output: lastOf(text)}, nil
	}
	return p.judge(ctx, during, text)
}

// mayRefuse reports whether a case is about what keeps a target from starting.
func (c Case) mayRefuse() bool {
	return strings.HasPrefix(c.ID, "dg-") || c.Command == "daemon start"
}

// setup runs the script that comes before the call.
func (p *player) setup(ctx context.Context) error {
	out, code := p.f.outside(ctx, script(p.w.Case.Setup, wordedSetups()), p.vars)
	if code != 0 {
		return fmt.Errorf("the setup ended with %d: %s", code, out)
	}
	return nil
}

// start starts the target and lets it serve a command: what it keeps ready is made
// before the case begins.
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
	var refused *suite.Refusal
	if errors.As(err, &refused) {
		p.vars["RC"] = fmt.Sprint(refused.Exit)
	}
	if err == nil {
		_, err = p.session.Run(ctx, suite.Command{Script: "true JOURNALSECRET", Dir: p.f.ws, Terminal: "off"})
	}
	return err
}

// playBeside starts the call in the background, if the case has one, and waits until that has
// made the file beside-ready in the workspace.
func (p *player) playBeside(ctx context.Context) error {
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
	if out, code := p.f.outside(ctx, `for i in {1..1200}; do [ -e @WS@/beside-ready ] && exit; sleep 0.05; done; exit 1`, nil); code != 0 {
		return fmt.Errorf("the call beside is not ready: %s", out)
	}
	return nil
}

// act makes the calls of the case. A check that looks for an open door runs while
// the door would be open; its verdict is returned as during.
func (p *player) act(ctx context.Context) (tool, text, during string, err error) {
	calls, times, err := p.f.calls(p.w.Case)
	if err != nil {
		return "", "", "", err
	}
	opened := make(chan struct{})
	looked := make(chan string, 1)
	var live func([]byte)
	open := false
	if c := p.w.Case; strings.Contains(c.MustNotHappen, "/dev/tcp/") {
		// Ends with the check, which begins when the call says that it listens, or is over.
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
	tool, text, err = p.try(ctx, calls, times, live)
	if !open {
		close(opened)
	}
	return tool, text, <-looked, err
}

// try makes calls so many times. Of many tries some lose their own race and are refused:
// those that ran count, and the last try is not made before one has.
func (p *player) try(ctx context.Context, calls []suite.Call, times int, live func([]byte)) (tool, text string, err error) {
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
	var inapt suite.NotApplicable
	if err != nil && !errors.As(err, &inapt) {
		return suite.Result{Exit: -1, Text: err.Error()}, nil // it did not run
	}
	return r, err
}

// note writes down how the last call ended for the scripts.
func (p *player) note() {
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

// didNotRun reports why nothing was tried: an attack that never ran was not blocked.
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

// logged is how long what listens in a world may take to log what has reached it.
const logged = 250 * time.Millisecond

// judge runs the checks of the case.
func (p *player) judge(ctx context.Context, during, text string) (Outcome, error) {
	if err := os.WriteFile(p.f.output, []byte(text), 0o644); err != nil {
		return Outcome{}, err
	}
	c := p.w.Case
	got := Outcome{Verdict: "usable", Output: lastOf(text)}
	if c.MustNotHappen != "" {
		verdict, why := p.check(ctx, c.MustNotHappen)
		if verdict == "false" && strings.Contains(c.MustNotHappen, "@LOG@") && suite.Elapse(ctx, logged) == nil {
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

// check runs a check of the case outside: true, false, or unknown where it is no
// script.
func (p *player) check(ctx context.Context, text string) (verdict, why string) {
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

func lastOf(text string) string {
	if len(text) > 600 {
		return "…" + text[len(text)-600:]
	}
	return text
}

// quoted makes one word of a shell's language.
func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
