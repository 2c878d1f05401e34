package connect

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
	"strings"
	"syscall"
	"time"

	"github.com/toold/toold/internal/tokens"
)

// site is the environment of a proof: a private daemon with all files in a temporary directory.
type site struct {
	dir, home, workspace string
	program              string // "" if not installed
	agent                Agent
	setup                Setup    // for the site's daemon
	after                [][]byte // the user's files after the change
	daemon               *exec.Cmd
}

const (
	refusal     = "proof-refused: use a branch"
	proofPolicy = `version: 1
defaults: {bash: allow, read: allow, write: allow, net: ask, unanalysable: ask}
commands:
  - {id: proof-push, decision: deny, run: ["git push **"], reason: "` + refusal + `"}
`
)

const (
	runWithin   = 3 * time.Minute
	startWithin = time.Minute
)

// ErrNoProgram means that the program of an agent is not installed.
var ErrNoProgram = errors.New("its program is not on PATH")

// Prove tests the change in a temporary directory: a command must run, a denied one must be refused, and without the
// daemon nothing may run.
func (p Plan) Prove(ctx context.Context) error {
	if p.Agent.Partly() == "" && p.Agent.program() == "" {
		return ErrNoProgram
	}
	s, err := newSite(ctx, p)
	if err != nil {
		return fmt.Errorf("the proof could not begin: %w", err)
	}
	defer s.remove()
	prove := p.Agent.prove
	if p.Agent.runsItself() {
		prove = func(ctx context.Context, s *site) error { return s.proveClient(ctx, p.Agent.trial()) }
	}
	if err := prove(ctx, s); err != nil || ctx.Err() == nil {
		return err
	}
	return context.Cause(ctx) // an interrupted proof proves nothing
}

// Partly returns what a test of the agent cannot show, or "".
func (a Agent) Partly() string {
	if a.runsItself() {
		return ""
	}
	return a.partly
}

func (a Agent) runsItself() bool { return a.trial != nil && a.program() != "" }

// newSite makes the directories of a proof and starts its daemon.
func newSite(ctx context.Context, p Plan) (*site, error) {
	dir, err := os.MkdirTemp("", "toold-proof-")
	if err != nil {
		return nil, err
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return nil, err
	}
	s := &site{dir: dir, home: filepath.Join(dir, "home"), workspace: filepath.Join(dir, "workspace"), program: p.Agent.program(), agent: p.Agent}
	for _, step := range p.steps {
		s.after = append(s.after, step.after)
	}
	state, config := filepath.Join(dir, "state"), filepath.Join(dir, "config.yaml")
	s.setup = Setup{
		Home: s.home, Getenv: func(string) string { return "" }, StateDir: state, Program: p.setup.Program,
		Flags: []string{"--state-dir", state, "--config", config},
	}
	policy := filepath.Join(dir, "policy.yaml")
	err = errors.Join(os.Mkdir(s.home, 0o700), os.Mkdir(s.workspace, 0o700), s.write(policy, proofPolicy), s.write(config, "version: 1\npolicy: "+policy+"\n"))
	if err == nil {
		err = s.start(ctx)
	}
	if err != nil {
		s.remove()
		return nil, err
	}
	return s, nil
}

func (s *site) write(path, text string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(text), 0o600)
}

// start starts the daemon, and waits until it has printed its address.
func (s *site) start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	args := append([]string{"serve", "--json", "--listen", "127.0.0.1:0", "--workspace", s.workspace}, s.setup.Flags...)
	s.daemon = exec.Command(s.setup.Program, args...) // without ctx, because stop ends it
	s.daemon.Dir, s.daemon.Env = s.workspace, s.environment(nil)
	var log strings.Builder
	s.daemon.Stderr = &log
	out, err := s.daemon.StdoutPipe()
	if err == nil {
		err = s.daemon.Start()
	}
	if err != nil {
		s.daemon = nil
		return fmt.Errorf("cannot start a daemon: %w", err)
	}
	lines := make(chan string, 1)
	// Ends with the daemon; stop waits for that.
	go func() {
		line, _ := bufio.NewReader(out).ReadString('\n')
		lines <- line
		_, _ = io.Copy(io.Discard, out)
	}()
	var ready struct{ Addresses struct{ HTTP string } }
	select {
	case line := <-lines:
		err = json.Unmarshal([]byte(line), &ready)
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if err != nil {
		_ = s.stop()
		return fmt.Errorf("a daemon did not start: %w\n%s", err, quoteOutput(log.String(), nil))
	}
	s.setup.URL = "ws" + strings.TrimPrefix(ready.Addresses.HTTP, "http")
	token, err := tokens.Make(tokens.In(s.setup.StateDir).Agent(s.agent.Name))
	s.setup.Token = token.Secret
	return err
}

func (s *site) stop() error {
	if s.daemon == nil {
		return nil
	}
	daemon := s.daemon
	s.daemon = nil
	if daemon.Process.Signal(syscall.SIGTERM) != nil {
		_ = daemon.Process.Kill()
	}
	late := time.AfterFunc(startWithin, func() { _ = daemon.Process.Kill() })
	defer late.Stop()
	if err := daemon.Wait(); err != nil {
		return fmt.Errorf("the daemon of the proof ended with %w", err)
	}
	return nil
}

func (s *site) remove() {
	_ = s.stop()
	_ = os.RemoveAll(s.dir)
}

// nowhere is a proxy address without a proxy, so that only loopback can be reached.
const nowhere = "http://127.0.0.1:1"

// environment returns the environment of programs in a proof. It has only PATH from the user's.
func (s *site) environment(more []string) []string {
	env := []string{
		"HOME=" + s.home, "PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8", "TMPDIR=" + os.TempDir(),
		"HTTPS_PROXY=" + nowhere, "HTTP_PROXY=" + nowhere, "ALL_PROXY=" + nowhere, "NO_PROXY=127.0.0.1,localhost",
		"https_proxy=" + nowhere, "http_proxy=" + nowhere, "all_proxy=" + nowhere, "no_proxy=127.0.0.1,localhost",
	}
	return append(env, more...)
}

func (s *site) run(ctx context.Context, env []string, program string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, runWithin)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = s.workspace, s.environment(env), 10*time.Second
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// Files that the calls of a proof create.
const (
	ranFile   = "toold-proof-ran"
	ranScript = "echo proof-$((6*7)) | tee " + ranFile
	downFile  = "toold-proof-down"
)

// A player makes calls. It returns the result of each as shown to the agent's model, and the output of the agent.
type player func(calls ...call) (seen []string, out string, err error)

// agentPlays returns a player that runs the agent with a model that makes the calls.
func (s *site) agentPlays(ctx context.Context, command func(url string) (env, args []string)) player {
	return func(calls ...call) ([]string, string, error) {
		m, err := newModel(calls...)
		if err != nil {
			return nil, "", err
		}
		defer m.close()
		env, args := command(m.url)
		out, err := s.run(ctx, env, s.program, args...)
		return m.results(), quoteOutput(out, err), nil
	}
}

// prove makes a call that must run and one that must be refused. Without the daemon it makes one of the shell and the
// calls down, which must not run.
func (s *site) prove(play player, shell func(script string) call, down ...call) error {
	seen, out, err := play(shell(ranScript), shell("git push origin toold-proof"))
	if err != nil {
		return err
	}
	made, _ := os.ReadFile(filepath.Join(s.workspace, ranFile))
	if string(made) != "proof-42\n" || !strings.Contains(seen[0], "proof-42") {
		return fmt.Errorf("a command that must run did not; its model was shown %q\n%s", seen[0], out)
	}
	if !strings.Contains(seen[1], refusal) {
		return fmt.Errorf("a command that toold denies was not refused with the reason; its model was shown %q\n%s", seen[1], out)
	}
	if err := s.stop(); err != nil {
		return err
	}
	_, out, err = play(append([]call{shell("touch " + downFile)}, down...)...)
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(s.workspace, downFile)); err == nil {
		return errors.New("without the daemon a command ran nevertheless, outside of toold\n" + out)
	}
	return nil
}

// quoteOutput indents the end of a program's output, and says with what error it ended.
func quoteOutput(out string, err error) string {
	const most = 1500
	if len(out) > most {
		out = "…" + out[len(out)-most:]
	}
	out = "  " + strings.ReplaceAll(strings.TrimSpace(out), "\n", "\n  ")
	if err != nil {
		out += fmt.Sprintf("\n  (it ended with %v)", err)
	}
	return out
}
