//go:build linux

package conformance

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// program is what an environment variable names, or a build, made once. It is built with the flags of the tests: another
// -trimpath would compile all packages again.
type program struct {
	variable, source string
	flags, env       []string

	once sync.Once
	dir  string // holds the build; empty when there is none
	path string
	err  error
}

func (p *program) pathOf(ctx context.Context) (string, error) {
	p.once.Do(func() { p.path, p.err = p.build(ctx) })
	return p.path, p.err
}

func (p *program) build(ctx context.Context) (string, error) {
	if path := os.Getenv(p.variable); path != "" {
		return filepath.Abs(path)
	}
	dir, err := os.MkdirTemp("", "toold-conformance-")
	if err != nil {
		return "", fmt.Errorf("cannot build %s: %w", p.source, err)
	}
	p.dir = dir
	// Others may have to run it too: the suite is not always root's.
	if err := os.Chmod(dir, 0o755); err != nil {
		return "", fmt.Errorf("cannot build %s: %w", p.source, err)
	}
	path := filepath.Join(dir, filepath.Base(p.source))
	args := append([]string{"build", "-o", path}, p.flags...)
	if os.Getenv("GOCOVERDIR") != "" {
		args = append(args, "-cover")
	}
	cmd := exec.CommandContext(ctx, "go", append(args, p.source)...)
	cmd.Env = append(cmd.Environ(), p.env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("cannot build %s: %w\n%s", p.source, err, out)
	}
	return path, nil
}

func (p *program) remove() {
	if p.dir != "" {
		os.RemoveAll(p.dir)
	}
}

// site is the directories and files of one case.
type site struct {
	home, workspace, state, config string
	tokens                         map[string]string // token name by roles, joined by ","
	ping                           time.Duration
	env                            []string  // of the daemon, beside the usual
	launch                         *launcher // nil: the daemon is started directly
	window                         *os.File  // the terminal from which it is started; nil: none
}

// daemon is a running process.
type daemon struct {
	cmd    *exec.Cmd
	pid    int               // of the daemon itself, which a launcher may have started
	ws     string            // the WebSocket endpoint
	http   string            // the origin
	tokens map[string]string // by token name
	log    *boundedLog
	exited chan struct{} // closed when the process has ended
	status error         // set before exited is closed
	ended  bool          // stop was called
}

// startDaemon returns when the daemon says that it is ready.
func startDaemon(ctx context.Context, path string, s *site) (*daemon, error) {
	cmd, err := s.command(path)
	if err != nil {
		return nil, err
	}
	d := &daemon{cmd: cmd, log: &boundedLog{}, exited: make(chan struct{})}
	cmd.Stderr = d.log
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("cannot start the daemon: %w", err)
	}
	d.pid = cmd.Process.Pid
	ready := make(chan []byte, 1)
	// Ends when the daemon does: its end closes the pipe.
	go func() {
		r := bufio.NewReader(out)
		text, _ := r.ReadBytes('\n')
		ready <- text
		io.Copy(io.Discard, r)
		d.status = cmd.Wait()
		close(d.exited)
	}()
	select {
	case text := <-ready:
		err = d.parseReady(text)
	case <-ctx.Done():
		err = errors.New("no ready line in time")
	}
	if err == nil && s.launch != nil {
		d.pid, err = s.launch.daemonPID()
	}
	if err != nil {
		d.kill()
		return nil, fmt.Errorf("the daemon did not start: %w\n%s", err, d.log.text())
	}
	return d, nil
}

// command is how the daemon of a site is started.
func (s *site) command(path string) (*exec.Cmd, error) {
	args := []string{
		path, "serve", "--json", "--listen", "127.0.0.1:0",
		"--workspace", s.workspace, "--state-dir", s.state, "--config", s.config,
	}
	cmd := exec.Command(args[0], args[1:]...)
	if s.launch != nil {
		var err error
		if cmd, err = s.launch.command(args); err != nil {
			return nil, err
		}
	}
	attachTerminal(cmd, s.window)
	cmd.Dir = s.workspace
	cmd.Env = append([]string{"HOME=" + s.home, "PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8"}, s.env...)
	if dir := os.Getenv("GOCOVERDIR"); dir != "" {
		cmd.Env = append(cmd.Env, "GOCOVERDIR="+dir)
	}
	return cmd, nil
}

// parseReady takes the ready line.
func (d *daemon) parseReady(text []byte) error {
	var ready struct {
		Ready     bool `json:"ready"`
		Addresses struct {
			WS   string `json:"ws"`
			HTTP string `json:"http"`
		} `json:"addresses"`
		TokenFiles map[string]string `json:"token_files"`
	}
	if err := json.Unmarshal(text, &ready); err != nil || !ready.Ready {
		return fmt.Errorf("the ready line is %q", text)
	}
	d.ws, d.http = ready.Addresses.WS, ready.Addresses.HTTP
	d.tokens = map[string]string{}
	for name, file := range ready.TokenFiles {
		token, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		d.tokens[name] = strings.TrimSpace(string(token))
	}
	return nil
}

func (d *daemon) alive() bool {
	select {
	case <-d.exited:
		return false
	default:
		return true
	}
}

// stop ends the daemon as an operator would. It fails if the daemon had ended before, or does not end properly.
func (d *daemon) stop(sig syscall.Signal) error {
	if d.ended {
		return nil
	}
	d.ended = true
	if !d.alive() {
		return fmt.Errorf("the daemon ended by itself: %v\n%s", d.status, d.log.text())
	}
	syscall.Kill(d.pid, sig)
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-d.exited:
	case <-timer.C:
		d.kill()
		return fmt.Errorf("the daemon did not end within %v of %v\n%s", patience, sig, d.log.text())
	}
	if sig == syscall.SIGTERM && d.status != nil {
		return fmt.Errorf("the daemon ended with %v after SIGTERM\n%s", d.status, d.log.text())
	}
	return nil
}

func (d *daemon) kill() {
	syscall.Kill(d.pid, syscall.SIGKILL)
	d.cmd.Process.Kill()
	<-d.exited
}

// boundedLog keeps the end of the daemon's log and counts all of it.
type boundedLog struct {
	mu    sync.Mutex
	kept  []byte
	bytes int64
}

const maxLog = 4000

func (l *boundedLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bytes += int64(len(p))
	l.kept = append(l.kept, p...)
	l.kept = slices.Delete(l.kept, 0, max(0, len(l.kept)-maxLog))
	return len(p), nil
}

func (l *boundedLog) size() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.bytes
}

// text returns what was kept.
func (l *boundedLog) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return "daemon's log:\n" + string(l.kept)
}
