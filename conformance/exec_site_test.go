//go:build linux

package conformance

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/toold/toold/conformance/suite/execution"
)

// newExecSite writes the directories, the configuration and the policy of a case.
// Its policy allows everything, and an approver agrees to what no policy can
// allow.
func newExecSite(base string, c execution.Case) (*site, error) {
	s, policy, err := newDirs(base, setup{})
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
	if c.Options.HomeWithBashrc == "" {
		return s, nil
	}
	return s, execution.WriteStartFiles(s.home, c.Options.HomeWithBashrc)
}

// startLimit is the soft limit of open files with which the daemon is started
// for a case that asks whether commands have it; Go raises it for itself.
const startLimit = 1000

// launchOf is how the daemon is started, nil for directly.
func launchOf(base string, c execution.Case) *launcher {
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
func execSettings(o execution.Options, policy string, tokens []token) ([]byte, error) {
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

// execArguments are what the call of a case says to toold.
func execArguments(c execution.Case, token string) (map[string]any, error) {
	args := map[string]any{}
	for name, value := range c.Arguments {
		args[name] = value
	}
	if c.Tool != "bash" {
		return args, nil
	}
	command := c.Command()
	if _, ok := c.Expect["stdout_only_token"]; ok {
		// toold has no variable of a call: the token stands in the script.
		command = execution.TokenName().ReplaceAllLiteralString(command, token)
	}
	args["command"] = command
	terminals := map[string]string{"off": "off", "single": "single", "split": "split", "split_pipe": "split", "": "split"}
	terminal, ok := terminals[c.Options.TTY]
	if !ok {
		return nil, fmt.Errorf("unknown tty %q", c.Options.TTY)
	}
	args["terminal"] = terminal
	if c.Options.TimeoutMS != nil {
		args["timeout"] = c.Timeout(*c.Options.TimeoutMS)
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
