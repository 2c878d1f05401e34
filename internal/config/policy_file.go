package config

import (
	"slices"
	"time"

	"github.com/toold/toold/policy"
)

// policyFile is the structure of a policy file. PolicySchema uses its tags, too.
type policyFile struct {
	Version  version        `yaml:"version" doc:"The version of this format: 1."`
	Name     string         `yaml:"name" doc:"What this policy is called in messages."`
	Mode     string         `yaml:"mode" oneof:"mode interactive headless" doc:"headless: nobody can be asked, and what would be asked is denied."`
	Defaults policyDefaults `yaml:"defaults" doc:"What happens when no rule matches."`
	Unknown  unknownPaths   `yaml:"unknown_paths" doc:"Paths that exist only at run time."`
	Presets  []string       `yaml:"presets" oneof:"preset shell-readonly shell-workspace" doc:"Built-in knowledge of everyday commands and their harmless flags."`
	Env      policyEnv      `yaml:"env" doc:"Environment variables that commands set."`
	Commands []commandRule  `yaml:"commands" doc:"Rules about programs."`
	Paths    []pathRule     `yaml:"paths" doc:"Rules about files and folders, for commands and file tools alike."`
	PathCase string         `yaml:"path_case" oneof:"path_case auto sensitive insensitive" doc:"Whether names that differ only in case are one. auto looks at the workspace."`
	Net      []netRule      `yaml:"net" doc:"Rules about hosts."`
	Builtin  struct {
		Disable []string `yaml:"disable" doc:"Ids of built-in rules that are switched off."`
	} `yaml:"builtin" doc:"The built-in rules."`
	Ask struct {
		Timeout   approvalTimeout `yaml:"timeout" doc:"How long a person has to answer, such as 120s. It replaces the configuration's approval.timeout."`
		OnTimeout onTimeout       `yaml:"on_timeout" doc:"What happens when nobody answers."`
		Grants    unsupported     `yaml:"grants"`
		OncePer   string          `yaml:"once_per" oneof:"once_per call conversation" doc:"conversation: a yes counts for the same question in the whole conversation, until the daemon ends."`
	} `yaml:"ask" doc:"Questions to people."`
	Clients []clientRule `yaml:"clients" doc:"Further policy files, each for the calls of some clients. They can only tighten."`
}

type policyDefaults struct {
	Bash         choice    `yaml:"bash" doc:"Programs."`
	Read         choice    `yaml:"read" doc:"Reading files and folders."`
	Write        choice    `yaml:"write" doc:"Creating, changing, renaming and removing files."`
	Net          choice    `yaml:"net" doc:"Contacting hosts."`
	Unanalysable askOrDeny `yaml:"unanalysable" doc:"Commands of which it cannot be known what they do. Never allow."`
	Confined     choice    `yaml:"confined" doc:"What programs, code given to them, paths known only at run time and variables get at least while the sandbox bounds the call: a view of its own (tier A, A-bwrap or B) and no network."`
}

type unknownPaths struct {
	Read  choice `yaml:"read" doc:"Reading them."`
	Write choice `yaml:"write" doc:"Writing them."`
}

type policyEnv struct {
	Allow   []string `yaml:"allow" doc:"Names, in which * is any text. A dangerous variable must be named in full."`
	Unknown choice   `yaml:"unknown" doc:"Variables that no list knows. It never covers dangerous ones."`
}

type ruleHead struct {
	At       place
	ID       string   `yaml:"id" doc:"What explanations and the journal call the rule."`
	Decision choice   `yaml:"decision" doc:"allow, ask or deny. Of commands, allow matches word for word; ask and deny match every spelling."`
	Reason   string   `yaml:"reason" doc:"Shown to people and to the agent."`
	Always   bool     `yaml:"always" doc:"Asked at every call; no earlier answer counts. For ask."`
	Except   []string `yaml:"except" doc:"Commands, paths or hosts that the rule does not concern."`
}

type commandRule struct {
	ruleHead
	Classes      []string `yaml:"class" oneof:"class destructive outgoing" doc:"Commands of such kinds, by what is known of their programs: destructive loses work that cannot be had again, outgoing sends something off this machine. For ask and deny."`
	Run          []string `yaml:"run" doc:"Commands: * is one word, ** any number, {a,b} a choice."`
	PermitFlags  []string `yaml:"permit_flags" doc:"Flags known to be unsafe that the rule wants to cover. For allow."`
	ForbidFlags  []string `yaml:"forbid_flags" doc:"Flags that the rule does not cover. For allow."`
	RequireFlags []string `yaml:"require_flags" empty:"no" doc:"Flags with their values that a command must have, in any spelling and place, and that patterns leave out. For allow."`
	Dirs         []string `yaml:"cwd" empty:"no" doc:"Folders in which the rule holds."`
	Profile      string   `yaml:"sandbox" oneof:"sandbox read-only workspace-write" doc:"The sandbox in which such a command runs, when it is stricter than the configured one."`
	Examples     struct {
		Match    []string `yaml:"match" doc:"Commands that the rule must match."`
		NotMatch []string `yaml:"not_match" doc:"Commands that the rule must not match."`
	} `yaml:"examples" doc:"Checked whenever the file is read."`
}

type pathRule struct {
	ruleHead
	Ops   []string `yaml:"ops" empty:"no" oneof:"operation read write" doc:"What is done to the path; both when absent."`
	Match []string `yaml:"match" doc:"Paths: * within a name, ** any depth, {a,b} a choice; ${workspace}, ${home}, ${tmp}."`
}

type netRule struct {
	ruleHead
	Hosts   []string `yaml:"hosts" doc:"Names, addresses, or *. and a name."`
	Ports   []int    `yaml:"ports" empty:"no" doc:"Any when absent."`
	Schemes []string `yaml:"schemes" empty:"no" doc:"Any when absent."`
	Methods []string `yaml:"methods" empty:"no" doc:"Of HTTP; any when absent."`
}

type clientRule struct {
	At    position
	Match struct {
		Client string `yaml:"client" doc:"The name of the client's token; * is any text, agent is every token, and \"agent NAME\" is one."`
		Agent  string `yaml:"agent" doc:"The agent's id, as the client says; * is any text."`
	} `yaml:"match" doc:"Whose calls the file is for."`
	Policy string `yaml:"policy" doc:"The file, from the folder of this one."`
}

// parsePolicy reads one policy file. defaultAction replaces missing defaults, except that what cannot be analysed is
// asked; defaultCase replaces a missing path_case. With an error, the layer has what is without a fault.
func parsePolicy(file string, src []byte, defaultAction policy.Action, defaultCase string) (layer, error) {
	d := &decoder{file: file, lines: linesOf(src)}
	w := policyFile{PathCase: defaultCase}
	if err := d.decode(src, &w); err == nil && w.Version == 0 {
		d.note(d.errorAt(position{1, 1}, "version is missing: begin the file with version: 1"))
	}
	f := policy.File{
		Name: file, Title: w.Name, Headless: w.Mode == "headless", Presets: w.Presets, Env: w.Env.Allow, Disable: w.Builtin.Disable,
		AskTimeout: time.Duration(w.Ask.Timeout), OncePer: w.Ask.OncePer, Lines: make(map[string]int), FoldCase: w.PathCase == caseInsensitive, AutoCase: w.PathCase == caseAuto,
	}
	w.setDefaults(&f, defaultAction)
	seen := make(map[string]position)
	for _, r := range w.Commands {
		d.checkRule(&r.ruleHead, seen)
		f.Commands = append(f.Commands, r.rule())
	}
	for _, r := range w.Paths {
		d.checkRule(&r.ruleHead, seen)
		f.Paths = append(f.Paths, r.rule())
	}
	for _, r := range w.Net {
		d.checkRule(&r.ruleHead, seen)
		f.Net = append(f.Net, r.rule())
	}
	return layer{file: f, decoder: d, clientRules: w.Clients}, d.failed()
}

func (w *policyFile) setDefaults(f *policy.File, defaultAction policy.Action) {
	for _, d := range []struct {
		name string
		to   *policy.Action
		from choice
	}{
		{"defaults.bash", &f.Defaults.Bash, w.Defaults.Bash},
		{"defaults.read", &f.Defaults.Read, w.Defaults.Read},
		{"defaults.write", &f.Defaults.Write, w.Defaults.Write},
		{"defaults.net", &f.Defaults.Net, w.Defaults.Net},
		{"unknown_paths.read", &f.Defaults.UnknownRead, w.Unknown.Read},
		{"unknown_paths.write", &f.Defaults.UnknownWrite, w.Unknown.Write},
		{"env.unknown", &f.Defaults.UnknownEnv, w.Env.Unknown},
		{"defaults.unanalysable", &f.Defaults.Unanalysable, choice(w.Defaults.Unanalysable)},
		{"defaults.confined", &f.Defaults.Confined, w.Defaults.Confined},
	} {
		if *d.to = defaultAction; d.from.set {
			*d.to, f.Lines[d.name] = d.from.action, d.from.At.line
		}
	}
	if !w.Defaults.Unanalysable.set {
		f.Defaults.Unanalysable = policy.Ask
	}
	if !w.Defaults.Confined.set && (defaultAction != policy.Allow || w.setsRaisedDefault()) {
		f.Defaults.Confined = policy.Deny
	}
}

func (w *policyFile) setsRaisedDefault() bool {
	raised := []choice{w.Defaults.Bash, w.Defaults.Net, w.Unknown.Read, w.Unknown.Write, w.Env.Unknown, choice(w.Defaults.Unanalysable)}
	return slices.ContainsFunc(raised, func(c choice) bool { return c.set })
}

// checkRule notes the faults of a rule's head, and makes up what is missing, so that the rule's other faults are found.
// What a rule with a fault lacks may be what it misspells.
func (d *decoder) checkRule(r *ruleHead, seen map[string]position) {
	before, complete := d.count, !r.At.faulty
	first, twice := seen[r.ID]
	switch {
	case r.ID == "" && complete:
		d.note(d.errorAt(r.At.position, "the rule has no id: explanations and the journal refer to it"))
	case r.ID != "" && twice:
		d.note(d.errorAt(r.At.position, "the id %q is already used in line %d", r.ID, first.line))
	}
	if r.ID == "" || twice {
		r.ID = r.At.path
	}
	seen[r.ID] = r.At.position
	if !r.Decision.set && complete {
		d.note(d.errorAt(r.At.position, "rule %q has no decision: expected allow, ask or deny", r.ID))
	}
	if !r.Decision.set {
		r.Decision.action = policy.Ask
	}
	r.At.faulty = r.At.faulty || d.count > before
}

func (r ruleHead) rule() policy.Rule {
	return policy.Rule{ID: r.ID, Action: r.Decision.action, Reason: r.Reason, Line: r.At.line, Always: r.Always, Except: r.Except}
}

// some returns a list, or in a rule with a fault one that is not empty.
func (r ruleHead) some(list []string) []string {
	if r.At.faulty && len(list) == 0 {
		return []string{"x"}
	}
	return list
}

func (r commandRule) rule() policy.Rule {
	out := r.ruleHead.rule()
	out.Classes, out.Run, out.Dirs, out.Profile = r.Classes, r.some(r.Run), r.Dirs, r.Profile
	if r.Decision.set {
		out.PermitFlags, out.ForbidFlags, out.RequireFlags = r.PermitFlags, r.ForbidFlags, r.RequireFlags
	}
	if !r.At.faulty {
		out.Match, out.NotMatch = r.Examples.Match, r.Examples.NotMatch
	}
	return out
}

func (r pathRule) rule() policy.Rule {
	out := r.ruleHead.rule()
	out.Paths = r.some(r.Match)
	for _, op := range r.Ops {
		out.Ops = append(out.Ops, map[string]policy.Kind{"read": policy.Read, "write": policy.Write}[op])
	}
	return out
}

func (r netRule) rule() policy.Rule {
	out := r.ruleHead.rule()
	out.Hosts, out.Ports, out.Schemes, out.Methods = r.some(r.Hosts), r.Ports, r.Schemes, r.Methods
	return out
}
