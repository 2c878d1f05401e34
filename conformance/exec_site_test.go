//go:build linux

package conformance

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// newExecSite writes the folders, the configuration and the policy of a case.
// Its policy allows everything, and an approver agrees to what no policy can
// allow.
func newExecSite(base string, c execCase) (*site, error) {
	s, policy, err := newFolders(base, setup{})
	if err != nil {
		return nil, err
	}
	for name, value := range c.Options.DaemonEnv {
		s.env = append(s.env, name+"="+value)
	}
	s.launch = launchOf(base, c)
	settings, err := execSettings(c.Options, policy, s.chooseTokens(setup{}))
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(s.config, settings, 0o600); err != nil {
		return nil, err
	}
	return s, s.execFiles(c.Options)
}

// startLimit is the soft limit of open files with which the daemon is started
// for a case that asks whether commands have it; Go raises it for itself.
const startLimit = 1000

// launchOf is how the daemon is started, nil for directly.
func launchOf(base string, c execCase) *launcher {
	l := &launcher{dir: filepath.Join(base, "bin"), how: c.Options.DaemonStart}
	if l.how == "" {
		l.how = "exec toold"
	}
	if _, ok := c.Expect["rlimit_nofile_equals_daemon_start"]; ok {
		l.openMax = startLimit
	}
	if c.Options.DaemonStart == "" && l.openMax == 0 {
		return nil
	}
	return l
}

// execSettings renders the configuration.
func execSettings(o execOptions, policy string, tokens []token) ([]byte, error) {
	all := map[string]any{"version": 1, "policy": policy, "tokens": tokens}
	limits, box, calls := map[string]any{}, map[string]any{}, map[string]any{}
	if o.GraceMS > 0 {
		limits["grace"] = fmt.Sprintf("%dms", o.GraceMS)
	}
	if o.MaxOutputBytes > 0 {
		limits["return_bytes"] = o.MaxOutputBytes
	}
	if o.MaxProcesses > 0 {
		calls["processes"] = o.MaxProcesses
	}
	if o.MaxMemoryBytes > 0 {
		calls["memory_bytes"] = o.MaxMemoryBytes
	}
	if len(calls) > 0 {
		box["limits"] = calls
	}
	switch o.Profile {
	case "", "agent": // what commands see by default is meant for agents
	case "danger-full-access":
		box["i_understand_full_access"] = true
		fallthrough
	case "read-only", "workspace-write":
		box["profile"] = o.Profile
	default:
		return nil, fmt.Errorf("unknown profile %q", o.Profile)
	}
	all["limits"], all["sandbox"] = limits, box
	if len(o.Redact) > 0 {
		all["redact"] = o.Redact
	}
	if len(o.Env) > 0 {
		all["env"] = map[string]any{"set": o.Env}
	}
	return json.Marshal(all)
}

// execFiles writes what lies in the home folder and the workspace.
func (s *site) execFiles(o execOptions) error {
	if o.HomeWithBashrc != "" {
		for _, name := range []string{".bashrc", ".bash_profile", ".profile"} {
			if err := os.WriteFile(filepath.Join(s.home, name), []byte(o.HomeWithBashrc+"\n"), 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}

// execArguments are what the call of a case says to toold.
func execArguments(c execCase, token string) (map[string]any, error) {
	args := map[string]any{}
	for name, value := range c.Arguments {
		args[name] = value
	}
	if c.Tool != "bash" {
		return args, nil
	}
	command := c.command()
	if _, ok := c.Expect["stdout_only_token"]; ok {
		// toold has no variable of a call: the token stands in the script.
		command = tokenName.ReplaceAllLiteralString(command, token)
	}
	args["command"] = command
	terminals := map[string]string{"off": "off", "single": "single", "split": "split", "split_pipe": "split", "": "split"}
	terminal, ok := terminals[c.Options.TTY]
	if !ok {
		return nil, fmt.Errorf("unknown tty %q", c.Options.TTY)
	}
	args["terminal"] = terminal
	if c.Options.TimeoutMS != nil {
		args["timeout"] = c.timeout(*c.Options.TimeoutMS)
	}
	if c.Options.CWD != "" {
		args["cwd"] = c.Options.CWD
	}
	if c.Options.StdinAtMS != nil {
		args["stdin"] = "open"
	}
	switch c.Options.Leftover {
	case "", "kill":
	case "keep":
		// What shall go on runs in the background. Its time is not that of the call.
		args["background"] = true
		delete(args, "timeout")
	default:
		return nil, fmt.Errorf("unknown leftover %q", c.Options.Leftover)
	}
	return args, nil
}

// timeout is the time of a call, ms. Where the end of it is not the point of a case
// it is long enough for a busy machine: what takes too long is late, not wrong.
func (c *execCase) timeout(ms int64) int64 {
	acted := c.Options.CancelAtMS != nil || c.Options.SignalAtMS != nil || c.Options.StepClockAtMS != nil
	if ms <= 0 || acted || string(c.Expect["status"]) == `"timeout"` {
		return ms
	}
	return max(ms, patience.Milliseconds())
}

// asks tells whether a case expects something of which a name begins so.
func (c *execCase) asks(prefixes ...string) bool {
	for name := range c.Expect {
		if slices.ContainsFunc(prefixes, func(p string) bool { return len(name) >= len(p) && name[:len(p)] == p }) {
			return true
		}
	}
	return false
}
