//go:build linux

package execution

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/toold/toold/conformance/suite"
	"github.com/toold/toold/internal/lazyregexp"
)

// player plays one exec case on a target.
type player struct {
	c       Case
	base    string
	mark    string // marks the processes of this case
	session suite.Session
	late    suite.Lateness
}

// Play plays a case on a target in a directory. reasons are why it fails, late is what was
// only too late; err is NotApplicable if the target cannot play it.
func Play(ctx context.Context, t suite.Target, base string, c Case) (reasons, late []string, err error) {
	if why := c.needs(); why != "" {
		return nil, nil, suite.NotApplicable(why)
	}
	p := &player{c: c, base: base, mark: fmt.Sprintf("%09d", time.Now().UnixNano()%1e9)}
	at := suite.Workspace{Dir: filepath.Join(base, "ws"), Home: filepath.Join(base, "home"), Scratch: filepath.Join(base, "target"), Profile: "workspace-write"}
	if err := p.prepare(&at); err != nil {
		return nil, nil, fmt.Errorf("cannot prepare: %w", err)
	}
	if p.session, err = t.Open(ctx, at); err != nil {
		return nil, nil, err
	}
	reasons, err = p.repeat(ctx)
	if e := p.session.Close(); e != nil && err == nil {
		reasons = append(reasons, e.Error())
	}
	killLeftovers(p.mark, p.base)
	return reasons, p.late.All(), err
}

// needs returns what a case needs that no Session has, "" if nothing.
func (c *Case) needs() string {
	switch o := c.Options; {
	case c.Own != "":
		return "own: " + c.Own
	case o.StdinAtMS != nil:
		return "adapters give commands no input"
	case o.ResizeAtMS != nil:
		return "adapters do not change the size of terminals"
	case o.SignalAtMS != nil:
		return "adapters send no signals"
	case !c.neutral():
		return "it needs or expects what only toold has"
	}
	return ""
}

// neutral reports whether every Session has the options of a case and shows something that it expects.
func (c *Case) neutral() bool {
	o := c.Options
	known := Options{
		TTY: o.TTY, TimeoutMS: o.TimeoutMS, CWD: o.CWD, Env: o.Env, Profile: o.Profile, Repeat: o.Repeat, Parallel: o.Parallel, Then: o.Then,
		Slow: o.Slow, CancelAtMS: o.CancelAtMS, DaemonEnv: o.DaemonEnv, HomeWithBashrc: o.HomeWithBashrc,
	}
	for name := range c.Expect {
		if !slices.Contains(ownExpectations, name) {
			return c.Tool == "bash" && reflect.DeepEqual(o, known)
		}
	}
	return false
}

func (p *player) prepare(at *suite.Workspace) error {
	for _, dir := range []string{at.Dir, at.Home, at.Scratch} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
	}
	if o := p.c.Options; o.HomeWithBashrc != "" {
		if err := WriteStartFiles(at.Home, o.HomeWithBashrc); err != nil {
			return err
		}
	}
	for name, value := range p.c.Options.DaemonEnv {
		at.Env = append(at.Env, name+"="+value)
	}
	return p.c.Mark(p.mark, at.Dir)
}

// WriteStartFiles writes what shells read when they start.
func WriteStartFiles(home, text string) (err error) {
	for _, name := range []string{".bashrc", ".bash_profile", ".profile"} {
		err = errors.Join(err, os.WriteFile(filepath.Join(home, name), []byte(text+"\n"), 0o644))
	}
	return err
}

// repeat plays the case Options.Repeat times, Options.Parallel at once.
func (p *player) repeat(ctx context.Context) (reasons []string, err error) {
	workers := max(1, p.c.Options.Parallel)
	for left := max(1, p.c.Options.Repeat, workers); left > 0 && len(reasons) == 0 && err == nil; left -= workers {
		var mu sync.Mutex
		var all sync.WaitGroup
		for range workers {
			// Ends with the case.
			all.Go(func() {
				whys, e := p.once(ctx)
				mu.Lock()
				defer mu.Unlock()
				reasons, err = append(reasons, whys...), errors.Join(err, e)
			})
		}
		all.Wait()
	}
	return reasons, err
}

// once plays the case one time.
func (p *player) once(ctx context.Context) ([]string, error) {
	reasons, err := p.run(ctx, p.c.Command(), p.c.Expect)
	then := p.c.Options.Then
	if err != nil || then == nil || len(reasons) > 0 {
		return reasons, err
	}
	reasons, err = p.run(ctx, then.Command, then.Expect)
	for i, why := range reasons {
		reasons[i] = "the command afterwards: " + why
	}
	return reasons, err
}

// usual is the timeout of commands in cases that are not about it.
const usual = 30 * time.Second

// run is one command of a case and how it ended.
type run struct {
	p       *player
	result  suite.Result
	status  string // exited, timeout, cancelled or spawn_error
	elapsed time.Duration
	token   string
}

// run runs a command and compares what comes of it with what is expected.
func (p *player) run(ctx context.Context, script string, expect map[string]json.RawMessage) (reasons []string, err error) {
	r := run{p: p, status: "exited", token: fmt.Sprintf("token-%s-%d", p.mark, time.Now().UnixNano())}
	limit, cancel := context.WithTimeout(ctx, suite.Patience)
	defer cancel()
	o := p.c.Options
	c := suite.Command{
		Script: TokenName().ReplaceAllLiteralString(script, r.token),
		Dir:    cmp.Or(o.CWD, filepath.Join(p.base, "ws")), Terminal: strings.TrimSuffix(o.TTY, "_pipe"),
	}
	for _, name := range slices.Sorted(maps.Keys(o.Env)) {
		c.Env = append(c.Env, name+"="+o.Env[name])
	}
	if o.TimeoutMS != nil {
		ms := max(*o.TimeoutMS, min(p.c.Timeout(*o.TimeoutMS), usual.Milliseconds()))
		c.Timeout = time.Duration(ms) * time.Millisecond
	}
	if !slices.Contains([]string{"off", "single", "split"}, c.Terminal) {
		return nil, fmt.Errorf("unknown terminal %q", c.Terminal)
	}
	cancelled := make(chan struct{})
	if o.CancelAtMS != nil {
		c.Live = p.canceller(limit, script, func() { close(cancelled); cancel() })
	}
	begun := time.Now()
	r.result, err = p.session.Run(limit, c)
	r.elapsed = time.Since(begun)
	_, inapt := errors.AsType[suite.NotApplicable](err)
	switch {
	case inapt:
		return nil, err
	case closed(cancelled):
		r.status = "cancelled"
	case limit.Err() != nil:
		return []string{fmt.Sprintf("it did not end within %v", suite.Patience)}, nil
	case err != nil:
		r.status = "spawn_error"
		r.result.Text = err.Error()
	case r.result.TimedOut:
		r.status = "timeout"
	}
	return r.check(expect), nil
}

// canceller cancels a command at its time, but not before its Announcement, if it has one. live must get its output.
func (p *player) canceller(ctx context.Context, script string, cancel func()) (live func([]byte)) {
	word := suite.Announcement(script)
	ready, once := make(chan struct{}), sync.Once{}
	if word == "" {
		close(ready)
	}
	// Ends when it has cancelled the command, or with the command.
	go func() {
		if suite.Sleep(ctx, time.Duration(*p.c.Options.CancelAtMS)*time.Millisecond) != nil {
			return
		}
		select {
		case <-ready:
			cancel()
		case <-ctx.Done():
		}
	}()
	if word == "" {
		return nil
	}
	return func(data []byte) {
		if strings.Contains(string(data), word) {
			once.Do(func() { close(ready) })
		}
	}
}

func closed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// check compares a run with what is expected, without ownExpectations.
func (r *run) check(expect map[string]json.RawMessage) (reasons []string) {
	for _, name := range slices.Sorted(maps.Keys(expect)) {
		why := ""
		if stream, check := StreamCheck(name); check != nil {
			if why = check(r.stream(stream), expect[name]); why != "" && r.status == "timeout" {
				r.p.late.Add(fmt.Sprintf("at the end of its time %s %s", name, why)) // it printed too late
				why = ""
			}
		} else if check := runChecks()[name]; check != nil {
			why = check(r, expect[name])
		}
		if why != "" {
			reasons = append(reasons, name+" "+why)
		}
	}
	if len(reasons) > 0 {
		reasons = append(reasons, fmt.Sprintf("it ended as %s after %v with %.600q", r.status, r.elapsed.Round(time.Millisecond), fmt.Sprintf("%+v", r.result)))
	}
	return reasons
}

func (r *run) stream(name string) Output {
	text := map[string]string{"stdout": r.result.Stdout, "stderr": r.result.Stderr, "combined": r.result.Stdout + r.result.Stderr}[name]
	if r.p.c.Options.TTY != "off" {
		text = strings.ReplaceAll(text, "\r\n", "\n") // as most terminals have it
	}
	return Output{text, text, int64(len(text))}
}

// TokenName is how the script of a case names the token of its call.
var TokenName = lazyregexp.New(`\$\{?RUN_ID\}?`)
