//go:build linux

package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/gorilla/websocket"
	"github.com/toold/toold/conformance/suite"
	"github.com/toold/toold/conformance/suite/execution"
)

// execPlayer plays one exec case against a daemon of its own.
type execPlayer struct {
	c       execution.Case
	program string
	mark    string // tells the processes of this case from others
	base    string
	site    *site
	daemon  *daemon
	rec     *recorder
	conn    *conn   // of the agent
	lives   []*conn // every connection there was, to be ended
	late    suite.Lateness
	before  int64 // resident memory of the daemon, bytes
	usage   usage // what the daemon held when it had served one call
}

// playExec plays a case in a directory and returns the reasons why it fails, and what
// was only too late. found gives the cases to which others refer.
func playExec(ctx context.Context, program, base string, c execution.Case, found func(id string) (execution.Case, bool)) (reasons, late []string) {
	p := &execPlayer{c: c, program: program, base: base, rec: newRecorder(), mark: fmt.Sprintf("%09d", time.Now().UnixNano()%1e9)}
	defer func() {
		if err := p.end(); err != nil {
			reasons = append(reasons, err.Error())
		}
	}()
	if reasons = p.play(ctx, found); len(reasons) > 0 {
		reasons = append(reasons, p.daemon.diagnostics())
	}
	return reasons, p.late.All()
}

func (p *execPlayer) play(ctx context.Context, found func(id string) (execution.Case, bool)) []string {
	if err := p.prepare(ctx); err != nil {
		return []string{"cannot prepare: " + err.Error()}
	}
	if id := p.c.Options.ReuseIDOf; id != "" {
		other, ok := found(id)
		if !ok {
			other = execution.Case{ID: id, Tool: "bash", Arguments: map[string]json.RawMessage{"command": json.RawMessage(`"true"`)}}
		}
		if err := p.first(ctx, other); err != nil {
			return []string{"cannot use the id first: " + err.Error()}
		}
	}
	reasons := p.repeat(ctx)
	if len(reasons) == 0 {
		reasons = p.afterwards(ctx)
	}
	return reasons
}

func (p *execPlayer) prepare(ctx context.Context) (err error) {
	if err := p.c.Mark(p.mark, filepath.Join(p.base, "ws")); err != nil {
		return err
	}
	if p.site, err = newExecSite(p.base, p.c); err != nil {
		return err
	}
	if err := p.start(ctx); err != nil {
		return err
	}
	// The daemon has served a call before it is measured: what it keeps ready from
	// then on is no leak.
	if p.c.Expects("no_leak", "daemon_rss") {
		if err := p.first(ctx, execution.Case{ID: "warm", Tool: "bash", Arguments: map[string]json.RawMessage{"command": json.RawMessage(`"true"`)}, Options: execution.Options{TTY: p.c.Options.TTY}}); err != nil {
			return err
		}
		p.usage = settledUsage(ctx, p.daemon.pid)
	}
	resetPeak(p.daemon.pid)
	p.before = memory(p.daemon.pid, "VmRSS")
	return nil
}

// start starts the daemon, an approver that says yes, and the agent.
func (p *execPlayer) start(ctx context.Context) (err error) {
	limit, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if p.daemon, err = startDaemon(limit, p.program, p.site); err != nil {
		return err
	}
	yes, err := approver(limit, p.daemon)
	if err != nil {
		return err
	}
	p.lives = append(p.lives, yes)
	return p.connect(limit)
}

// connect begins a new life of the agent's connection.
func (p *execPlayer) connect(ctx context.Context) (err error) {
	life := 0
	if p.conn != nil {
		life = p.conn.life + 1
	}
	p.conn, err = p.follow(ctx, "a", life)
	return err
}

// follow opens a connection as the agent and says what it wants to hear.
func (p *execPlayer) follow(ctx context.Context, name string, life int) (*conn, error) {
	got := func(_ *conn, kind int, data []byte) { p.rec.add(name, life, kind, data) }
	c, err := dial(ctx, p.daemon, name, life, p.daemon.tokens["agent"], got, p.rec.notify)
	if err != nil {
		return nil, err
	}
	p.lives = append(p.lives, c)
	if p.c.Options.Stream != nil && !*p.c.Options.Stream {
		if err := c.send(websocket.TextMessage, []byte(`{"message_type":"hello","protocol":1,"output":"none"}`)); err != nil {
			return nil, err
		}
	}
	return c, greet(ctx, c)
}

// repeat plays the case as often as it says, so many at once as it says.
func (p *execPlayer) repeat(ctx context.Context) (reasons []string) {
	workers := max(1, p.c.Options.Parallel)
	times := max(1, p.c.Options.Repeat, workers)
	next := make(chan int)
	var mu sync.Mutex
	var all sync.WaitGroup
	for w := range workers {
		// Ends when there is nothing more to play.
		all.Go(func() {
			for n := range next {
				if workers == 1 && n > 0 {
					p.rec.forget() // what came before: only who plays knows that it is over
				}
				whys := p.once(ctx, w, n)
				mu.Lock()
				for _, why := range whys {
					if times > 1 {
						why = fmt.Sprintf("repetition %d: %s", n+1, why)
					}
					reasons = append(reasons, why)
				}
				mu.Unlock()
			}
		})
	}
	for n := range times {
		mu.Lock()
		failed := len(reasons) > 0
		mu.Unlock()
		if failed {
			break
		}
		next <- n
	}
	close(next)
	all.Wait()
	return reasons
}

// once plays the case one time and holds it against what it expects. Worker w has
// a directory of its own if a call prepares files for it.
func (p *execPlayer) once(ctx context.Context, w, n int) []string {
	c := p.c
	if b := c.Options.Before; b != nil {
		folder := filepath.Join(p.site.workspace, fmt.Sprint("worker-", w))
		if err := prepareBefore(b, folder); err != nil {
			return []string{err.Error()}
		}
		if c.Options.CWD == "" {
			c.Options.CWD = folder
		}
		if err := p.first(ctx, asCase(b, fmt.Sprintf("before-%d", n), folder)); err != nil {
			return []string{"the call before it: " + err.Error()}
		}
	}
	id := fmt.Sprintf("%s-%d-%s", p.c.ID, n, p.mark)
	if other := p.c.Options.ReuseIDOf; other != "" {
		id = other
	}
	r, err := p.run(ctx, c, id)
	if err != nil {
		return []string{err.Error()}
	}
	reasons := r.check(ctx, p.c.Expect)
	if f := p.c.Options.Then; f != nil && len(reasons) == 0 {
		follow := p.c
		follow.Arguments = map[string]json.RawMessage{"command": json.RawMessage(text(f.Command))}
		follow.Expect = f.Expect
		if r, err = p.run(ctx, follow, id+"-then"); err != nil {
			return []string{"the command afterwards: " + err.Error()}
		}
		for _, why := range r.check(ctx, f.Expect) {
			reasons = append(reasons, "the command afterwards: "+why)
		}
	}
	return reasons
}

// prepareBefore makes the directory of a worker and, where the case names a mode, the file
// with it: toold keeps the mode of a file that is there.
func prepareBefore(b *execution.Before, folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil || b.Mode == "" {
		return err
	}
	mode, err := strconv.ParseUint(b.Mode, 8, 12)
	if err != nil {
		return fmt.Errorf("the mode of before: %w", err)
	}
	path := filepath.Join(folder, b.Path)
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		return err
	}
	return os.Chmod(path, os.FileMode(mode)) // whatever the umask would take
}

func asCase(b *execution.Before, id, folder string) execution.Case {
	args := map[string]json.RawMessage{"command": json.RawMessage(text(b.Command)), "cwd": json.RawMessage(text(folder))}
	if b.Tool != "bash" {
		path := filepath.Join(folder, b.Path)
		args = map[string]json.RawMessage{"file_path": json.RawMessage(text(path)), "content": json.RawMessage(text(b.Content))}
	}
	return execution.Case{ID: id, Tool: b.Tool, Arguments: args}
}

// first makes a call that must succeed before the case begins.
func (p *execPlayer) first(ctx context.Context, c execution.Case) error {
	c.Options = execution.Options{TTY: c.Options.TTY}
	r, err := p.run(ctx, c, c.ID)
	if err != nil {
		return err
	}
	if r.ret == nil || r.ret["status"] != "success" {
		return fmt.Errorf("it returned %.600s", text(r.ret))
	}
	return nil
}

// afterwards checks what must hold when every repetition is over.
func (p *execPlayer) afterwards(ctx context.Context) (reasons []string) {
	for _, name := range []string{"no_leak", "daemon_rss_growth_mb_max", "daemon_alive"} {
		if value, ok := p.c.Expect[name]; ok {
			if err := p.daemonCheck(ctx, name, value); err != nil {
				reasons = append(reasons, name+": "+err.Error())
			}
		}
	}
	return append(reasons, p.rec.rules()...)
}

// end ends every connection and the daemon.
func (p *execPlayer) end() error {
	for _, c := range slices.Backward(p.lives) {
		c.close()
	}
	if p.daemon == nil {
		return nil
	}
	return p.daemon.stop(syscall.SIGTERM)
}
