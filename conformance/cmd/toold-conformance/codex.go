//go:build linux

package main

import (
	"context"
	_ "embed" // of codexStart
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/gorilla/websocket"

	"github.com/toold/toold/conformance/suite"
)

// codex is the exec-server of Codex, with the sandbox for which Codex asks it.
type codex struct{ program string }

func (c codex) Version(ctx context.Context) (string, error) {
	if c.program == "" {
		return "", errors.New("TOOLD_CODEX names no program")
	}
	return version(ctx, c.program, "--version")
}

func (c codex) Files() []string { return hiddenDirs(c.program, "node") }

// codexSession is an exec-server. Each command has a connection of its own.
type codexSession struct {
	at     suite.Workspace
	server *exec.Cmd
	url    string
}

func (c codex) Open(ctx context.Context, at suite.Workspace) (suite.Session, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	url := "ws://127.0.0.1:" + port
	s := codexSession{at, exec.Command(c.program, "exec-server", "--listen", url), url}
	s.server.Dir = at.Dir
	s.server.Env = append(append(os.Environ(), "HOME="+at.Home, "CODEX_HOME="+at.Scratch), at.Env...)
	return s, startServer(ctx, s.server, func() error {
		ws, _, err := websocket.DefaultDialer.DialContext(ctx, url, nil)
		if err == nil {
			err = ws.Close()
		}
		return err
	})
}

func (s codexSession) Close() error { return killGroup(s.server) }

func (s codexSession) Run(ctx context.Context, c suite.Command) (suite.Result, error) {
	switch {
	case c.Terminal == "split":
		return suite.Result{}, suite.NotApplicable("codex has one terminal for all streams")
	case s.at.Profile == "read-only" || s.at.Profile == "full":
		return suite.Result{}, suite.NotApplicable("the adapter asks codex for its mode workspace-write only")
	}
	ws, _, err := websocket.DefaultDialer.DialContext(ctx, s.url, nil)
	if err != nil {
		return suite.Result{Exit: -1}, err
	}
	frames := make(chan codexFrame, 1<<16)
	go receive(ws, frames) // ends with the connection
	defer func() {
		ws.Close()
		for range frames {
		}
	}()
	start, err := s.start(c)
	for _, request := range []map[string]any{
		{"id": 1, "method": "initialize", "params": map[string]any{"clientName": "codex-environment", "resumeSessionId": nil}},
		{"method": "initialized", "params": map[string]any{}},
		{"id": 2, "method": "process/start", "params": start},
	} {
		err = errors.Join(err, ws.WriteJSON(request))
	}
	if err != nil {
		return suite.Result{Exit: -1}, err
	}
	return follow(ctx, c, ws, frames)
}

type codexFrame struct {
	Method string
	Error  *struct{ Message string }
	Params struct {
		Stream   string
		Chunk    []byte
		ExitCode *int
	}
}

func receive(ws *websocket.Conn, frames chan<- codexFrame) {
	defer close(frames)
	for {
		var f codexFrame
		if ws.ReadJSON(&f) != nil {
			return
		}
		frames <- f
	}
}

// follow collects what a process prints until it is over. Its time and the end of ctx end it;
// what holds its streams open then is not waited for.
func follow(ctx context.Context, c suite.Command, ws *websocket.Conn, frames <-chan codexFrame) (r suite.Result, err error) {
	r.Exit = -1
	var out, errs strings.Builder
	defer func() { r.Stdout, r.Stderr = out.String(), errs.String() }()
	limit, cancel := within(ctx, c.Timeout)
	defer cancel()
	var settled <-chan time.Time
	for over := limit.Done(); ; {
		select {
		case f, open := <-frames:
			switch {
			case !open:
				return r, errors.New("the connection ended")
			case f.Error != nil:
				return r, errors.New(f.Error.Message)
			case f.Method == "process/closed":
				return r, nil
			case f.Params.ExitCode != nil:
				r.Exit, settled = *f.Params.ExitCode, time.After(time.Second)
				if r.Exit > 128 {
					r.Signal = suite.UnknownSignal
				}
			case f.Params.Stream == "stderr":
				errs.Write(f.Params.Chunk)
			default:
				out.Write(f.Params.Chunk)
			}
			if c.Live != nil {
				c.Live(f.Params.Chunk)
			}
		case <-settled:
			return r, nil
		case <-over:
			over, settled, r.TimedOut = nil, time.After(5*time.Second), ctx.Err() == nil
			// If this fails, frames ends too.
			_ = ws.WriteJSON(map[string]any{"id": 9, "method": "process/terminate", "params": map[string]any{"processId": "p"}})
		}
	}
}

//go:embed codex-start.json
var codexStart string

// start is the request as Codex sends it in its mode workspace-write.
func (s codexSession) start(c suite.Command) (request map[string]any, err error) {
	if err := json.Unmarshal([]byte(strings.NewReplacer("@DIR@", c.Dir, "@ROOT@", s.at.Dir).Replace(codexStart)), &request); err != nil {
		return nil, err
	}
	env := request["env"].(map[string]any)
	if aliases, _ := filepath.Glob(filepath.Join(s.at.Scratch, "tmp", "*", "*")); len(aliases) > 0 { // where Codex finds its own sandbox
		env["PATH"] = aliases[0] + ":" + os.Getenv("PATH")
	}
	for _, v := range c.Env {
		name, value, _ := strings.Cut(v, "=")
		env[name] = value
	}
	request["argv"], request["tty"] = []string{"bash", "-c", c.Script}, c.Terminal == "single"
	return request, nil
}
