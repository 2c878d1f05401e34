package config

import (
	_ "embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/toold/toold/policy"
)

// careful is the policy that holds when the user has written none.
//
//go:embed careful.yaml
var careful []byte

// CarefulPolicy returns the text of the built-in default policy. It is commented
// so that it can be written to disk and changed.
func CarefulPolicy() []byte { return append([]byte(nil), careful...) }

// WorkspacePolicy is where a workspace may have a policy of its own, relative to
// the workspace. It can only tighten.
const WorkspacePolicy = ".toold/policy.yaml"

// LoadPolicy reads the user's policy from path ("" means the built-in one), the
// workspace's own from o.Workspace if there is one, and compiles them. A fault
// in either is an error: a policy that was meant to hold is not left out.
func LoadPolicy(path string, o policy.Options) (*policy.Policy, error) {
	user, err := ReadPolicy(path)
	if err != nil {
		return nil, err
	}
	return CompilePolicy(user, o)
}

// ReadPolicy reads one policy file ("" means the built-in one) as its author
// wrote it, for whoever looks at the rules themselves. It does not compile it.
func ReadPolicy(path string) (policy.File, error) {
	name, src := "careful.yaml (built-in)", careful
	if path != "" {
		text, err := readRegular(os.OpenFile, path)
		if err != nil {
			return policy.File{}, fmt.Errorf("cannot read the policy: %w", err)
		}
		name, src = path, text
	}
	return parsePolicy(name, src, policy.Ask)
}

// CompilePolicy is LoadPolicy for a user's policy that has been read already,
// and perhaps changed: for whoever proposes rules and proves them.
func CompilePolicy(user policy.File, o policy.Options) (*policy.Policy, error) {
	further, err := workspacePolicy(o.Workspace)
	if err != nil {
		return nil, err
	}
	p, err := policy.Compile(o, user, further...)
	if err != nil {
		return nil, fmt.Errorf("cannot compile the policy: %w", err)
	}
	return p, nil
}

// workspacePolicy reads the workspace's own policy, if there is one.
func workspacePolicy(workspace string) ([]policy.File, error) {
	if workspace == "" {
		return nil, nil
	}
	root, err := os.OpenRoot(workspace)
	if err != nil {
		return nil, fmt.Errorf("cannot open the workspace: %w", err)
	}
	defer root.Close()
	src, err := readRegular(root.OpenFile, WorkspacePolicy)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the workspace's policy: %w", err)
	}
	f, err := parsePolicy(WorkspacePolicy, src, policy.Allow)
	return []policy.File{f}, err
}

// maxPolicy bounds a policy file, in bytes. Ten thousand rules take less.
const maxPolicy = 8 << 20

// readRegular reads a regular file of bounded size. Others may write to the
// workspace: a pipe there must not hold the daemon up, nor a device fill its
// memory.
func readRegular(open func(string, int, fs.FileMode) (*os.File, error), path string) ([]byte, error) {
	f, err := open(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	src, err := io.ReadAll(io.LimitReader(f, maxPolicy+1))
	if len(src) > maxPolicy {
		return nil, fmt.Errorf("%s has more than %d MiB", path, maxPolicy>>20)
	}
	return src, err
}

// policyFile is a policy file as it is written.
type policyFile struct {
	Version  version        `yaml:"version"`
	Name     string         `yaml:"name"`
	Mode     mode           `yaml:"mode"`
	Defaults policyDefaults `yaml:"defaults"`
	Unknown  struct {
		Read  action `yaml:"read"`
		Write action `yaml:"write"`
	} `yaml:"unknown_paths"`
	Presets []string `yaml:"presets"`
	Env     struct {
		Allow   []string `yaml:"allow"`
		Unknown action   `yaml:"unknown"`
	} `yaml:"env"`
	Commands []commandRule `yaml:"commands"`
	Paths    []pathRule    `yaml:"paths"`
	PathCase pathCase      `yaml:"path_case"`
	Net      []netRule     `yaml:"net"`
	Builtin  struct {
		Disable []string `yaml:"disable"`
	} `yaml:"builtin"`
}

// policyDefaults decide what no rule matches.
type policyDefaults struct {
	Bash         action `yaml:"bash"`
	Read         action `yaml:"read"`
	Write        action `yaml:"write"`
	Net          action `yaml:"net"`
	Unanalysable action `yaml:"unanalysable"`
}

// commandRule is a rule about commands.
type commandRule struct {
	At          place
	ID          string   `yaml:"id"`
	Decision    *action  `yaml:"decision"`
	Reason      string   `yaml:"reason"`
	Run         []string `yaml:"run"`
	Except      []string `yaml:"except"`
	PermitFlags []string `yaml:"permit_flags"`
	ForbidFlags []string `yaml:"forbid_flags"`
	Dirs        []string `yaml:"cwd"`
	Examples    struct {
		Match    []string `yaml:"match"`
		NotMatch []string `yaml:"not_match"`
	} `yaml:"examples"`
}

// pathRule is a rule about paths.
type pathRule struct {
	At       place
	ID       string      `yaml:"id"`
	Decision *action     `yaml:"decision"`
	Reason   string      `yaml:"reason"`
	Ops      []operation `yaml:"ops"`
	Match    []string    `yaml:"match"`
	Except   []string    `yaml:"except"`
}

// netRule is a rule about hosts.
type netRule struct {
	At       place
	ID       string   `yaml:"id"`
	Decision *action  `yaml:"decision"`
	Reason   string   `yaml:"reason"`
	Hosts    []string `yaml:"hosts"`
	Ports    []int    `yaml:"ports"`
	Schemes  []string `yaml:"schemes"`
	Methods  []string `yaml:"methods"`
}

// parsePolicy reads a policy file. Defaults that it does not name are unset,
// but never loosen what cannot be analysed.
func parsePolicy(file string, src []byte, unset policy.Action) (policy.File, error) {
	a := action(unset)
	w := policyFile{Defaults: policyDefaults{a, a, a, a, action(policy.Ask)}}
	w.Unknown.Read, w.Unknown.Write, w.Env.Unknown = a, a, a
	if err := decodeStrict(file, src, &w); err != nil {
		return policy.File{}, err
	}
	d := decoder{file: file, lines: linesOf(src)}
	if w.Version == 0 {
		return policy.File{}, d.errorAt(place{1, 1}, "version is missing: begin the file with version: 1")
	}
	f := policy.File{
		Name: file, Headless: bool(w.Mode), FoldCase: bool(w.PathCase), Presets: w.Presets,
		Env: w.Env.Allow, Disable: w.Builtin.Disable,
		Defaults: policy.Defaults{
			Bash: policy.Action(w.Defaults.Bash), Read: policy.Action(w.Defaults.Read), Write: policy.Action(w.Defaults.Write),
			Net: policy.Action(w.Defaults.Net), Unanalysable: policy.Action(w.Defaults.Unanalysable),
			UnknownRead: policy.Action(w.Unknown.Read), UnknownWrite: policy.Action(w.Unknown.Write), UnknownEnv: policy.Action(w.Env.Unknown),
		},
	}
	ids := make(map[string]place)
	for _, r := range w.Commands {
		f.Commands = append(f.Commands, r.rule())
	}
	for _, r := range w.Paths {
		f.Paths = append(f.Paths, r.rule())
	}
	for _, r := range w.Net {
		f.Net = append(f.Net, r.rule())
	}
	return f, d.checkRules(&w, ids)
}

// checkRules refuses rules without id or decision, and ids that occur twice.
func (d *decoder) checkRules(w *policyFile, seen map[string]place) error {
	check := func(at place, id string, decision *action) error {
		switch first, twice := seen[id]; {
		case id == "":
			return d.errorAt(at, "the rule has no id: explanations and the journal refer to it")
		case twice:
			return d.errorAt(at, "the id %q is already used in line %d", id, first.line)
		case decision == nil:
			return d.errorAt(at, "rule %q has no decision: expected allow, ask or deny", id)
		}
		seen[id] = at
		return nil
	}
	for _, r := range w.Commands {
		if err := check(r.At, r.ID, r.Decision); err != nil {
			return err
		}
	}
	for _, r := range w.Paths {
		if err := check(r.At, r.ID, r.Decision); err != nil {
			return err
		}
	}
	for _, r := range w.Net {
		if err := check(r.At, r.ID, r.Decision); err != nil {
			return err
		}
	}
	return nil
}

func (r commandRule) rule() policy.Rule {
	return policy.Rule{
		ID: r.ID, Action: r.Decision.value(), Reason: r.Reason, Line: r.At.line, Except: r.Except, Run: r.Run,
		PermitFlags: r.PermitFlags, ForbidFlags: r.ForbidFlags, Dirs: r.Dirs, Match: r.Examples.Match, NotMatch: r.Examples.NotMatch,
	}
}

func (r pathRule) rule() policy.Rule {
	out := policy.Rule{ID: r.ID, Action: r.Decision.value(), Reason: r.Reason, Line: r.At.line, Except: r.Except, Paths: r.Match}
	for _, op := range r.Ops {
		out.Ops = append(out.Ops, policy.Kind(op))
	}
	return out
}

func (r netRule) rule() policy.Rule {
	return policy.Rule{
		ID: r.ID, Action: r.Decision.value(), Reason: r.Reason, Line: r.At.line,
		Hosts: r.Hosts, Ports: r.Ports, Schemes: r.Schemes, Methods: r.Methods,
	}
}
