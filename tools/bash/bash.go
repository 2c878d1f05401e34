// Package bash is the tool that runs shell commands: it reports what a script can
// do before it runs (package shell), and runs exactly that script.
package bash

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/toold/toold/executor"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/sandbox/egress"
	"github.com/toold/toold/sandbox/masks"
	"github.com/toold/toold/sandbox/protect"
	"github.com/toold/toold/shell"
	"github.com/toold/toold/tools"
)

// The limits of a call's time when Options names none.
const (
	DefaultTimeout = 120 * time.Second
	MaxTimeout     = 600 * time.Second
	MaxBackground  = 8 * time.Hour
)

// Options configure the tool. The zero value of each but Workspace is usable.
type Options struct {
	Workspace string            // absolute and canonical; where commands start
	Env       []string          // the commands' whole environment, NAME=value
	Profile   sandbox.Profile   // what commands are confined to
	Terminal  executor.Terminal // when a call names none
	Rows      uint16            // of the terminals; 0 = the executor's
	Cols      uint16

	DefaultTimeout time.Duration // 0 = DefaultTimeout
	MaxTimeout     time.Duration // 0 = MaxTimeout
	MaxBackground  time.Duration // of a call that runs on after its return; 0 = MaxBackground
	Grace          time.Duration // between TERM and KILL; 0 = the executor's

	ReturnBytes int64 // of each stream in a return, for the description; 0 = not said
	Background  bool  // calls may run on after their return, for the description

	Resolver shell.Resolver // nil = the host's file system

	Egress  egress.Options   // how connections are made where Profile has Ports; each call brings its own Allow
	Masks   *masks.Tracker   // of what rules keep from programs; nil = nothing is masked
	Protect *protect.Watcher // of what commands may not change in the workspace; nil = nothing is protected. The caller closes it.

	Pool *executor.Pool // runs the commands; nil = each starts a shell. The caller closes it.
}

// New returns the tool. It is safe for concurrent use.
func New(o Options) tools.Tool {
	if o.DefaultTimeout == 0 {
		o.DefaultTimeout = DefaultTimeout
	}
	if o.MaxTimeout == 0 {
		o.MaxTimeout = MaxTimeout
	}
	if o.MaxBackground == 0 {
		o.MaxBackground = MaxBackground
	}
	o.DefaultTimeout = min(o.DefaultTimeout, o.MaxTimeout)
	if o.Resolver == nil {
		o.Resolver = shell.Host()
	}
	env := make(map[string]string)
	for _, entry := range o.Env {
		if name, text, ok := strings.Cut(entry, "="); ok {
			env[name] = text
		}
	}
	t := &tool{options: o, analyser: shell.New(shell.Options{Workspace: o.Workspace, Env: env, Resolver: o.Resolver})}
	if !o.guarded(o.Profile) {
		o.Pool.Prepare(t.usual())
		return t
	}
	o.Protect.Follow(func(existing []string) {
		c := t.usual()
		c.Sandbox.Protect, c.Sandbox.Masks = existing, o.Masks.Usual()
		o.Pool.Prepare(c)
	})
	return t
}

// guarded reports whether what a profile can write holds what must stay.
func (o Options) guarded(p sandbox.Profile) bool {
	return o.Protect != nil && p.Mode == sandbox.WorkspaceWrite
}

// usual is the command of a call that asks for nothing special, but for its script.
func (t *tool) usual() executor.Command {
	o := t.options
	held, is := pin(o.Workspace)
	held.Close() // allowed on nil
	return executor.Command{
		Dir: o.Workspace, DirIs: is, Env: o.Env, Terminal: o.Terminal, Rows: o.Rows, Cols: o.Cols,
		Stdin: o.Terminal == executor.Single, Sandbox: o.Profile,
	}
}

type tool struct {
	options  Options
	analyser *shell.Analyser
}

// restarted is what runs for restart, which other tools of this name have.
const restarted = "echo 'There is no shell to restart: every command runs in a fresh one.'"

// arguments are what a call may say.
type arguments struct {
	Command       string          `json:"command" alias:"cmd"`
	Restart       bool            `json:"restart"`
	Dir           string          `json:"cwd" alias:"workdir,dir_path,working_directory"`
	Timeout       *int64          `json:"timeout" alias:"timeout_ms"`
	Terminal      *string         `json:"terminal" enum:"split|single|off"`
	Stdin         *string         `json:"stdin" enum:"open|closed"`
	Background    bool            `json:"background" alias:"run_in_background,is_background"`
	Escalate      escalation      `json:"escalate"`
	Description   json.RawMessage `json:"description" ignored:"true"`
	Justification json.RawMessage `json:"justification" ignored:"true"`
}

// escalation is what a call asks for that its sandbox would keep from it.
type escalation struct {
	Read []string `json:"read"`
}

// Definition describes the tool to a model.
func (t *tool) Definition() tools.Definition {
	text := func(s string) map[string]any { return map[string]any{"type": "string", "description": s} }
	choice := func(s string, values ...string) map[string]any {
		return map[string]any{"type": "string", "enum": values, "description": s}
	}
	schema, err := json.Marshal(map[string]any{
		"type": "object", "required": []string{"command"}, "additionalProperties": false,
		"properties": map[string]any{
			"command": text("The bash script to run. It is judged as written: literal programs, paths and hosts are decided at once, computed ones are asked."),
			"cwd":     text("Folder in which it runs, absolute or relative to the workspace. Default: the workspace."),
			"timeout": map[string]any{
				"type": "integer", "minimum": 0, "maximum": max(t.options.MaxTimeout, t.options.MaxBackground).Milliseconds(),
				"description": fmt.Sprintf("Milliseconds until it is stopped. Default %d; 0 means the maximum, %d. With background, up to %d.", t.options.DefaultTimeout.Milliseconds(), t.options.MaxTimeout.Milliseconds(), t.options.MaxBackground.Milliseconds()),
			},
			"terminal": choice("split: a terminal, with stderr apart. single: one terminal for everything. off: pipes, for data.", "split", "single", "off"),
			"stdin":    choice("open: input can be sent while it runs. closed: it reads the end of input. Default: open in single, else closed.", "open", "closed"),
			"escalate": map[string]any{
				"type": "object", "additionalProperties": false,
				"properties": map[string]any{
					"read": map[string]any{"type": "array", "items": map[string]any{"type": "string"}, "description": "Files or folders, such as .env, that a program of the script has to read although a rule asks first: the user is asked."},
				},
				"description": "What the script needs beyond its sandbox. Send it when a return names it.",
			},
			"background": map[string]any{
				"type":        "boolean",
				"description": fmt.Sprintf("true: return at once and let the script run on, with all that it starts, for at most %s (or its timeout). For servers and watchers.", t.options.MaxBackground),
			},
		},
	})
	if err != nil {
		schema = []byte(`{"type":"object"}`) // cannot happen: the values above marshal
	}
	return tools.Definition{
		Name: "bash", Parameters: schema,
		Description: t.options.describe(),
	}
}

// Location returns the directory in which a call asks to run.
func (t *tool) Location(args json.RawMessage) (path string, runs bool) {
	a, err := tools.Decode[arguments](args)
	if err != nil {
		return "", true
	}
	return a.Dir, true
}

// Build parses a call.
func (t *tool) Build(args json.RawMessage) (tools.Invocation, error) {
	a, err := tools.Decode[arguments](args)
	if err != nil {
		return nil, err
	}
	if a.Restart && a.Command == "" {
		a.Command = restarted
	}
	switch {
	case a.Restart && a.Command != restarted:
		return nil, &tools.ArgumentError{Field: "restart", Problem: "given beside command; send one of them"}
	case strings.TrimSpace(a.Command) == "":
		return nil, &tools.ArgumentError{Field: "command", Problem: "it is blank or missing: expected a bash script"}
	}
	v := &invocation{tool: t, script: a.Command, terminal: t.options.Terminal}
	if v.dir, err = t.folder(a.Dir); err != nil {
		return nil, err
	}
	v.pinned, v.dirIs = pin(v.dir)
	v.background = a.Background
	if v.timeout, err = t.timeout(a); err != nil {
		return nil, err
	}
	if a.Terminal != nil {
		v.terminal = map[string]executor.Terminal{"split": executor.Split, "single": executor.Single, "off": executor.Off}[*a.Terminal]
	}
	v.stdin = v.terminal == executor.Single
	if a.Stdin != nil {
		v.stdin = *a.Stdin == "open"
	}
	v.effects = t.analyser.Effects(v.script, v.dir)
	t.ownScratch(v.effects)
	t.markKept(v.script, v.effects)
	if err := v.escalate(a.Escalate); err != nil {
		return nil, err
	}
	if v.dir != t.options.Workspace {
		// A command sees what is in the folder it runs in, and whoever decides must
		// know which that is. Inside the workspace no rule need allow it.
		inside := within(v.dir, t.options.Workspace)
		v.effects = append(v.effects, policy.Effect{Kind: policy.Read, Path: v.dir, Canonical: v.dir, Possible: inside, Source: "cwd"})
	}
	return v, nil
}

// folder resolves the folder of a call. It must exist.
func (t *tool) folder(dir string) (string, error) {
	if dir == "" {
		return t.options.Workspace, nil
	}
	asked := dir
	if !filepath.IsAbs(asked) {
		asked = t.options.Workspace + "/" + asked
	}
	fail := func(why string) error {
		return &tools.ArgumentError{Field: "cwd", Problem: fmt.Sprintf("%q %s: expected a folder, absolute or relative to the workspace", asked, why)}
	}
	path := t.options.Resolver.Canonical(asked)
	if path == "" {
		return "", fail("cannot be resolved")
	}
	if within(path, "/proc") {
		return "", fail("is in /proc, which differs for each process")
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", fail("does not exist")
	case err != nil:
		return "", fail("cannot be opened")
	case !info.IsDir():
		return "", fail("is not a folder")
	}
	return path, nil
}

// pin holds the folder of a call from when it is judged: the script runs in this one
// or not at all. Only Linux can tell.
func pin(dir string) (held *os.File, is string) {
	held, is, err := sandbox.Pin(dir)
	switch {
	case errors.Is(err, sandbox.ErrUnavailable):
		return nil, ""
	case err != nil:
		return nil, "nowhere" // no folder is that
	}
	return held, is
}

// timeout reads the timeout of a call.
func (t *tool) timeout(a arguments) (time.Duration, error) {
	ms, usual, limit := a.Timeout, t.options.DefaultTimeout, t.options.MaxTimeout
	if a.Background {
		usual, limit = t.options.MaxBackground, t.options.MaxBackground
	}
	switch {
	case ms == nil:
		return usual, nil
	case *ms < 0:
		return 0, &tools.ArgumentError{Field: "timeout", Problem: fmt.Sprintf("%d is negative: expected milliseconds, 0 to %d", *ms, limit.Milliseconds())}
	case *ms == 0:
		return limit, nil
	case *ms > limit.Milliseconds():
		return 0, &tools.ArgumentError{Field: "timeout", Problem: fmt.Sprintf("%d is above the maximum of %d ms: run longer work in parts", *ms, limit.Milliseconds())}
	}
	return time.Duration(*ms) * time.Millisecond, nil
}

// within reports whether path is dir or below it.
func within(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}
