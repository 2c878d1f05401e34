package policy

import (
	"fmt"
	"slices"
	"strings"
)

// With returns the file with a change made in it.
func (f File) With(c Change) File {
	switch c.Section {
	case "commands":
		f.Commands = append(slices.Clip(f.Commands), c.Rule)
	case "paths":
		f.Paths = append(slices.Clip(f.Paths), c.Rule)
	case "net":
		f.Net = append(slices.Clip(f.Net), c.Rule)
	case "env.allow":
		f.Env = append(slices.Clip(f.Env), c.Texts...)
	case "builtin.disable":
		f.Disable = append(slices.Clip(f.Disable), c.Texts...)
	case "except":
		f.Commands, f.Paths, f.Net = excepting(f.Commands, c), excepting(f.Paths, c), excepting(f.Net, c)
	default:
		if to := f.Defaults.named(c.Section); to != nil {
			*to = Allow
		}
	}
	return f
}

// excepting adds exceptions to the rule that a change names.
func excepting(rules []Rule, c Change) []Rule {
	rules = slices.Clone(rules)
	for i, r := range rules {
		if r.ID == c.At {
			rules[i].Except = append(slices.Clip(r.Except), c.Texts...)
		}
	}
	return rules
}

// Text is the change as it is made in a policy file, for people. user is the name of
// the user's file, which needs no mention.
func (c Change) Text(user string) string {
	in := ""
	if c.File != user && user != "" {
		in = " in " + c.File
	}
	section, key, _ := strings.Cut(c.Section, ".")
	switch c.Section {
	case "commands", "paths", "net":
		return fmt.Sprintf("under %s: %s", c.Section, c.Rule.String())
	case "except":
		return fmt.Sprintf("an exception in rule %q: except: %s%s", c.At, listText(c.Texts), in)
	case "builtin.disable":
		return fmt.Sprintf("builtin: {disable: %s}, which takes the whole of a built-in rule away", listText(c.Texts))
	case "env.allow":
		return fmt.Sprintf("env: {allow: %s}", listText(c.Texts))
	}
	return fmt.Sprintf("%s: {%s: allow}%s", section, key, in)
}

// String is the rule as it is written in a policy file, on one line.
func (r Rule) String() string {
	keys := []string{"id: " + r.ID, "decision: " + r.Action.String()}
	list := func(key string, texts []string) {
		if len(texts) > 0 {
			keys = append(keys, key+": "+listText(texts))
		}
	}
	list("run", r.Run)
	list("require_flags", r.RequireFlags)
	list("permit_flags", r.PermitFlags)
	list("cwd", r.Dirs)
	if len(r.Ops) == 1 {
		keys = append(keys, "ops: ["+r.Ops[0].String()+"]")
	}
	list("match", r.Paths)
	list("hosts", r.Hosts)
	if len(r.Ports) > 0 {
		keys = append(keys, fmt.Sprintf("ports: [%d]", r.Ports[0]))
	}
	list("schemes", r.Schemes)
	return "{" + strings.Join(keys, ", ") + "}"
}

// listText writes texts as a list that YAML and people read alike.
func listText(texts []string) string {
	quoted := make([]string, len(texts))
	for i, text := range texts {
		quoted[i] = fmt.Sprintf("%q", text)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}
