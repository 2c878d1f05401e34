//go:build linux

package conformance

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// usualPing is the daemon's default.
const usualPing = 30 * time.Second

// freezes reports whether a connection of a case is frozen.
func freezes(c wireCase) bool {
	return slices.ContainsFunc(c.Send, func(s step) bool { return s.FreezeSocket })
}

// hasApprover reports whether the case answers an approval request. Its deadline is raised then.
func hasApprover(c wireCase) bool {
	return slices.ContainsFunc(c.Send, func(s step) bool {
		return slices.Contains(c.Setup.Roles[s.Conn], "approver") && bytes.Contains(s.JSON, []byte(`"approve"`))
	})
}

// newSite writes the directories, the configuration and the policy of a case below
// a directory.
func newSite(base string, c wireCase) (*site, error) {
	s, policy, err := newDirs(base, c.Setup)
	if err != nil {
		return nil, err
	}
	if freezes(c) {
		// The daemon must give up the peer before its call ends (see adapt): a return written to a socket that is not read
		// would count as delivered.
		s.ping = time.Second
	}
	if hasApprover(c) {
		c.Setup.AskTimeoutMS = max(c.Setup.AskTimeoutMS, int(patience.Milliseconds()))
	}
	settings, err := s.settings(c.Setup, policy)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(s.config, settings, 0o600); err != nil {
		return nil, err
	}
	return s, s.files(c.Setup.Files)
}

// newDirs makes the directories of a case and writes its policy.
func newDirs(base string, set setup) (s *site, policy string, err error) {
	s = &site{
		home: filepath.Join(base, "home"), workspace: filepath.Join(base, "ws"),
		state: filepath.Join(base, "state"), config: filepath.Join(base, "config.yaml"),
		ping: usualPing,
	}
	rules, err := policyText(set)
	if err != nil {
		return nil, "", err
	}
	policy = filepath.Join(base, "policy.yaml")
	return s, policy, errors.Join(os.Mkdir(s.home, 0o755), os.Mkdir(s.workspace, 0o755), os.WriteFile(policy, rules, 0o600))
}

// settings renders the configuration. JSON is YAML, so it needs no encoder of
// its own.
func (s *site) settings(set setup, policy string) ([]byte, error) {
	limits := map[string]any{}
	for name, value := range set.Limits {
		if name == "external_yield_ms" {
			continue // of `toold letta`
		}
		if short, ok := strings.CutSuffix(name, "_ms"); ok {
			limits[short] = string(value) + "ms"
		} else {
			limits[name] = value
		}
	}
	if s.ping != usualPing {
		limits["ping"], limits["idle"] = s.ping.String(), (3 * s.ping).String()
	}
	all := map[string]any{"version": 1, "policy": policy, "limits": limits, "tokens": s.chooseTokens(set)}
	if set.AskTimeoutMS > 0 {
		all["approval"] = map[string]string{"timeout": (time.Duration(set.AskTimeoutMS) * time.Millisecond).String()}
	}
	if len(set.Redact) > 0 {
		all["redact"] = set.Redact
	}
	switch set.Profile {
	case "":
	case "pty":
		all["terminal"] = "split"
	case "pipe":
		all["terminal"] = "off"
	default:
		return nil, fmt.Errorf("unknown profile %q: expected pty or pipe", set.Profile)
	}
	return json.Marshal(all)
}

type token struct {
	Name  string   `json:"name"`
	Roles []string `json:"roles"`
}

// chooseTokens makes one token for each set of roles of the case, beside the
// usual ones.
func (s *site) chooseTokens(set setup) []token {
	tokens := []token{
		{"agent", []string{"agent"}},
		{"approver", []string{"approver", "observer"}},
		{"observer", []string{"observer"}},
	}
	s.tokens = map[string]string{"agent": "agent", "approver": "approver", "observer": "observer"}
	for _, roles := range set.Roles {
		if key := strings.Join(roles, ","); s.tokens[key] == "" {
			s.tokens[key] = strings.Join(roles, "-")
			tokens = append(tokens, token{s.tokens[key], roles})
		}
	}
	return tokens
}

// policyText renders the policy of a case.
func policyText(set setup) ([]byte, error) {
	var word string
	var rules []map[string]string
	switch {
	case len(set.Policy) == 0:
		word = "allow_all"
	case json.Unmarshal(set.Policy, &word) == nil:
	default:
		if err := json.Unmarshal(set.Policy, &rules); err != nil {
			return nil, fmt.Errorf("cannot read the policy: %w", err)
		}
		word = "deny_all"
		if set.Default != "" {
			word = set.Default + "_all"
		}
	}
	action, ok := strings.CutSuffix(word, "_all")
	if !ok || !slices.Contains([]string{"allow", "ask", "deny"}, action) {
		return nil, fmt.Errorf("unknown policy %q: expected allow_all, ask_all, deny_all or rules", word)
	}
	return renderPolicy(action, rules)
}

// renderPolicy renders a policy with action as its default. No policy allows what cannot be analysed: where all is
// allowed, the player's approver approves it.
func renderPolicy(action string, rules []map[string]string) ([]byte, error) {
	unanalysable := action
	if action == "allow" {
		unanalysable = "ask"
	}
	commands, paths := []any{}, []any{}
	for i, r := range rules {
		for decision, what := range r {
			tool, pattern, _ := strings.Cut(what, " ")
			rule := map[string]any{"id": fmt.Sprintf("rule-%d", i+1), "decision": decision}
			switch tool {
			case "bash":
				rule["run"] = []string{commandPattern(pattern)}
				commands = append(commands, rule)
			case "read_file", "read":
				rule["ops"], rule["match"] = []string{"read"}, []string{pathPattern(pattern)}
				paths = append(paths, rule)
			case "write_file", "edit_file", "write":
				rule["ops"], rule["match"] = []string{"write"}, []string{pathPattern(pattern)}
				paths = append(paths, rule)
			default:
				return nil, fmt.Errorf("unknown tool in the rule %q", what)
			}
		}
	}
	fileAction := action
	if len(rules) > 0 {
		fileAction = "allow" // the rules speak of commands; what these touch is not the point
	}
	return json.Marshal(map[string]any{
		"version": 1,
		"defaults": map[string]string{
			"bash": action, "read": fileAction, "write": fileAction, "net": action, "unanalysable": unanalysable,
		},
		"unknown_paths": map[string]string{"read": fileAction, "write": fileAction},
		"env":           map[string]string{"unknown": fileAction},
		"commands":      commands, "paths": paths,
	})
}

// commandPattern turns "rm" and "*" into patterns that take any further words.
func commandPattern(pattern string) string {
	if pattern == "*" || pattern == "" {
		return "**"
	}
	return pattern + " **"
}

func pathPattern(pattern string) string {
	if pattern == "*" || pattern == "" {
		return "/**"
	}
	if strings.HasPrefix(pattern, "/") || strings.HasPrefix(pattern, "**/") {
		return pattern
	}
	return "${workspace}/" + pattern
}

// files writes the files of a case into the workspace.
func (s *site) files(files map[string]json.RawMessage) error {
	for name, what := range files {
		path := filepath.Join(s.workspace, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := makeFile(path, what); err != nil {
			return fmt.Errorf("cannot make %s: %w", name, err)
		}
	}
	return nil
}

func makeFile(path string, what json.RawMessage) error {
	var content string
	if json.Unmarshal(what, &content) == nil {
		return os.WriteFile(path, []byte(content), 0o644)
	}
	var special struct {
		B64     *string `json:"b64"`
		Fifo    bool    `json:"fifo"`
		Dir     bool    `json:"dir"`
		Symlink string  `json:"symlink"`
		Size    int     `json:"size"`
	}
	d := json.NewDecoder(bytes.NewReader(what))
	d.DisallowUnknownFields()
	if err := d.Decode(&special); err != nil {
		return err
	}
	switch {
	case special.B64 != nil:
		data, err := base64.StdEncoding.DecodeString(*special.B64)
		if err != nil {
			return err
		}
		return os.WriteFile(path, data, 0o644)
	case special.Fifo:
		return syscall.Mkfifo(path, 0o644)
	case special.Dir:
		return os.MkdirAll(path, 0o755)
	case special.Symlink != "":
		return os.Symlink(special.Symlink, path)
	default:
		return os.WriteFile(path, bytes.Repeat([]byte("a"), special.Size), 0o644)
	}
}
