//go:build linux

package conformance

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toold/toold/conformance/suite"
	"github.com/toold/toold/conformance/suite/escape"
)

// site writes the configuration of the daemon: its policy allows everything, so
// that only the sandbox is between the attack and the world.
func (t *escapeTarget) site(at suite.Workspace) (*site, error) {
	s := &site{
		home: at.Home, workspace: at.Dir, state: filepath.Join(at.Home, ".local", "state", "toold"),
		config: filepath.Join(at.Home, ".config", "toold", "config.yaml"), window: at.Window, env: at.Env,
	}
	// What is in the workspace is kept from programs by a rule, and what file tools read is
	// what a policy allows: these cases need one that does not allow all.
	set := setup{}
	switch kind, _, _ := strings.Cut(t.world.Case.ID, "-"); kind {
	case "rd":
		set.Policy, set.Default = json.RawMessage(`[{"deny":"read_file `+at.Dir+`/**/.env"}]`), "allow"
	case "ft":
		set.Policy, set.Default = json.RawMessage(`[{"deny":"read_file `+t.outside+`/**"}]`), "allow"
	}
	if widens(t.world.Case) {
		set.Policy = json.RawMessage(`"ask_all"`)
	}
	rules, err := policyText(set)
	if err != nil {
		return nil, err
	}
	if t.world.Case.ByName() {
		if rules, err = egressPolicy(rules); err != nil {
			return nil, err
		}
	}
	policy := filepath.Join(at.Home, ".config", "toold", "policy.yaml")
	if err := os.WriteFile(policy, rules, 0o600); err != nil {
		return nil, err
	}
	box := map[string]any{}
	if t.world.Bare {
		box["allow_degraded"], box["read"] = "tier-c", []string{filepath.Dir(t.world.Programs["e"]), t.attack, "~/.gitconfig"}
		if err := os.WriteFile(t.attack, nil, 0o644); err != nil { // what can be read must be there
			return nil, err
		}
	}
	if t.world.Bwrap {
		box["launcher"] = "bwrap"
	}
	if takesMemory(t.world.Case) {
		box["limits"] = map[string]any{"memory_bytes": "256MiB"}
	}
	switch at.Profile {
	case "full":
		box["profile"] = "danger-full-access"
		box["i_understand_full_access"] = t.world.Case.Command != "daemon start"
	case "network-off":
		box["profile"], box["network"] = "workspace-write", "off"
	default:
		box["profile"] = at.Profile
	}
	if t.world.Case.ByName() {
		egressSettings(t.world.Case, box)
	}
	settings, err := json.Marshal(map[string]any{
		"version": 1, "policy": policy, "tokens": s.chooseTokens(setup{}), "sandbox": box,
		"approval": map[string]any{"widen": map[string]any{"write": []string{t.outside}}},
	})
	if err != nil {
		return nil, err
	}
	return s, os.WriteFile(s.config, settings, 0o600)
}

// takesMemory reports whether a case takes memory until a limit that is lower than the usual
// one, since a virtual machine may need a minute to get that much. With TOOLD_CASES=all
// rs-05 tries the usual one.
func takesMemory(c escape.Case) bool {
	usual := c.ID == "rs-05" && everyCase()
	return !usual && slices.Contains([]string{"rs-05", "rs-08", "rs-09", "rs-10", "rs-13"}, c.ID)
}
