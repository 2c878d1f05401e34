// Package bash provides the tool that runs shell commands. Effects lists everything that a script can do, Execute runs
// exactly that script, and no process of it outlives Execute.
package bash

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/toold/toold/executor"
	"github.com/toold/toold/internal/paths"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/sandbox/egress"
	"github.com/toold/toold/sandbox/launch"
	"github.com/toold/toold/sandbox/masks"
	"github.com/toold/toold/sandbox/protect"
	"github.com/toold/toold/shell"
	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/argument"
)

// Defaults of limits in Options.
const (
	DefaultTimeout = 120 * time.Second
	MaxTimeout     = 600 * time.Second
	MaxBackground  = 8 * time.Hour
)

// Options configures the tool. Only Workspace is required.
type Options struct {
	Workspace string   // absolute and canonical
	Env       []string // NAME=value
	Profile   sandbox.Profile
	Terminal  executor.Terminal // default terminal of a call

	DefaultTimeout time.Duration // 0 = DefaultTimeout
	MaxTimeout     time.Duration // 0 = MaxTimeout
	MaxBackground  time.Duration // 0 = MaxBackground
	Grace          time.Duration // between SIGTERM and SIGKILL; 0 = the executor's

	ReturnBytes int64 // shown in the description: maximum of each stream in a return; 0: not shown
	Background  bool  // shown in the description

	Egress  egress.Options   // used if Profile has Ports; Allow is set for each call
	Masks   *masks.Tracker   // masks files in the sandbox; may be nil
	Protect *protect.Watcher // watches protected paths; may be nil. The caller closes it.

	Pool *executor.Pool // warm shells; nil: each command starts a shell. The caller closes it.
}

// New returns the tool. It is safe for concurrent use.
func New(o Options) tools.Tool {
	o.MaxTimeout = cmp.Or(o.MaxTimeout, MaxTimeout)
	o.MaxBackground = cmp.Or(o.MaxBackground, MaxBackground)
	o.DefaultTimeout = min(cmp.Or(o.DefaultTimeout, DefaultTimeout), o.MaxTimeout)
	env := make(map[string]string)
	for _, entry := range o.Env {
		if name, text, ok := strings.Cut(entry, "="); ok {
			env[name] = text
		}
	}
	t := &tool{options: o, analyser: shell.New(shell.Options{Workspace: o.Workspace, Env: env, Resolver: shell.Host()})}
	if !o.protects(o.Profile) {
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

func (o Options) protects(p sandbox.Profile) bool {
	return o.Protect != nil && p.Mode == sandbox.WorkspaceWrite
}

// usual returns the command of a call with default arguments, without a script.
func (t *tool) usual() executor.Command {
	o := t.options
	held, is := pin(o.Workspace)
	held.Close() // held may be nil
	return executor.Command{
		Dir: o.Workspace, DirIs: is, Env: o.Env, Terminal: o.Terminal,
		Stdin: o.Terminal == executor.Single, Sandbox: o.Profile,
	}
}

type tool struct {
	options  Options
	analyser *shell.Analyser
}

const restarted = "echo 'There is no shell to restart: every command runs in a fresh one.'"

type arguments struct {
	Command    string      `json:"command" alias:"cmd"`
	Restart    bool        `json:"restart"`
	Dir        string      `json:"cwd" alias:"workdir,dir_path,working_directory"`
	Timeout    *int64      `json:"timeout" alias:"timeout_ms"`
	Terminal   *string     `json:"terminal" enum:"split|single|off"`
	Stdin      *string     `json:"stdin" enum:"open|closed"`
	Background bool        `json:"background" alias:"run_in_background,is_background"`
	Escalate   extraAccess `json:"escalate"`
	argument.Ignored
}

type extraAccess struct {
	Read []string `json:"read"`
}

func (t *tool) Definition() tools.Definition {
	o := t.options
	return tools.Definition{
		Name: "bash", Description: o.describe(),
		Parameters: argument.Schema(`"command"`, `"command":{"type":"string","description":"The bash script to run. It is judged as written: literal programs, paths and hosts are decided at once, computed ones may need approval."},`+
			`"cwd":{"type":"string","description":"Directory in which it runs, absolute or relative to the workspace. Default: the workspace."},`+
			`"timeout":{"type":"integer","minimum":0,"maximum":%d,"description":"Milliseconds until it is stopped. Default %d; 0 means the maximum, %d. With background, up to %d."},`+
			`"terminal":{"type":"string","enum":["split","single","off"],"description":"split: a terminal, with separate stderr. single: one terminal for everything. off: pipes, for data."},`+
			`"stdin":{"type":"string","enum":["open","closed"],"description":"open: input can be sent while it runs. closed: it reads the end of input. Default: open in single, else closed."},`+
			`"escalate":{"type":"object","additionalProperties":false,"properties":{"read":{"type":"array","items":{"type":"string"},`+
			`"description":"Files or directories, such as .env, that a program of the script must read although a rule requires approval: the user is asked."}},`+
			`"description":"What the script needs beyond its sandbox. Send it when a return names it."},`+
			`"background":{"type":"boolean","description":"true: return at once while the script continues, with all that it starts, for at most %s (or its timeout). For servers and watchers."}`,
			max(o.MaxTimeout, o.MaxBackground).Milliseconds(), o.DefaultTimeout.Milliseconds(), o.MaxTimeout.Milliseconds(), o.MaxBackground.Milliseconds(), o.MaxBackground),
	}
}

func (t *tool) Location(args json.RawMessage) (paths []string, runs bool) {
	a, _ := argument.Decode[arguments](args) // zero after an error
	return []string{a.Dir}, true
}

func (t *tool) Build(args json.RawMessage) (tools.Invocation, error) {
	a, err := argument.Decode[arguments](args)
	if err != nil {
		return nil, err
	}
	if a.Restart && a.Command == "" {
		a.Command = restarted
	}
	switch {
	case a.Restart && a.Command != restarted:
		return nil, &argument.Error{Field: "restart", Problem: "sent with command; send one of them"}
	case strings.TrimSpace(a.Command) == "":
		return nil, &argument.Error{Field: "command", Problem: "it is empty or missing: expected a bash script"}
	}
	v := &invocation{tool: t, script: a.Command, terminal: t.options.Terminal}
	if v.dir, err = t.directory(a.Dir); err != nil {
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
		// A script can see its directory, so reading it is an effect. Inside the workspace no rule has to allow that.
		inside := paths.Within(v.dir, t.options.Workspace)
		v.effects = append(v.effects, policy.Effect{Kind: policy.Read, Path: v.dir, Canonical: v.dir, Possible: inside, Source: "cwd"})
	}
	return v, nil
}

func (t *tool) directory(dir string) (string, error) {
	if dir == "" {
		return t.options.Workspace, nil
	}
	asked := dir
	if !filepath.IsAbs(asked) {
		asked = t.options.Workspace + "/" + asked
	}
	fail := func(why string) error {
		return &argument.Error{Field: "cwd", Problem: fmt.Sprintf("%q %s: expected a directory, absolute or relative to the workspace", asked, why)}
	}
	if t.options.Profile.Mode != sandbox.FullAccess {
		hidden := t.options.Profile.Hide
		if at, _, _, _ := paths.ResolveUntil(asked, hidden...); slices.Contains(hidden, at) {
			return "", fail("is hidden from calls (sandbox.hide)") // whatever it is
		}
	}
	path := shell.Host().Canonical(asked)
	if path == "" {
		return "", fail("cannot be resolved")
	}
	if paths.Within(path, "/proc") {
		return "", fail("is in /proc, which differs for each process")
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", fail("does not exist")
	case err != nil:
		return "", fail("cannot be opened")
	case !info.IsDir():
		return "", fail("is not a directory")
	}
	return path, nil
}

// pin identifies the directory that the policy decides on. The script runs only in this directory (Linux only).
func pin(dir string) (held *os.File, is string) {
	held, is, err := launch.Pin(dir)
	switch {
	case errors.Is(err, sandbox.ErrUnavailable):
		return nil, ""
	case err != nil:
		return nil, "nowhere" // matches no directory
	}
	return held, is
}

func (t *tool) timeout(a arguments) (time.Duration, error) {
	ms, usual, limit := a.Timeout, t.options.DefaultTimeout, t.options.MaxTimeout
	if a.Background {
		usual, limit = t.options.MaxBackground, t.options.MaxBackground
	}
	switch {
	case ms == nil:
		return usual, nil
	case *ms < 0:
		return 0, &argument.Error{Field: "timeout", Problem: fmt.Sprintf("%d is negative: expected milliseconds, 0 to %d", *ms, limit.Milliseconds())}
	case *ms == 0:
		return limit, nil
	case *ms > limit.Milliseconds():
		return 0, &argument.Error{Field: "timeout", Problem: fmt.Sprintf("%d is above the maximum of %d ms: run longer work in parts", *ms, limit.Milliseconds())}
	}
	return time.Duration(*ms) * time.Millisecond, nil
}
