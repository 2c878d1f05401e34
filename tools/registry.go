package tools

import (
	"fmt"
	"regexp"
)

// aliases maps the names that other agents' tool sets use to the canonical
// ones, where the shape of the arguments is accepted too. Policy and journal
// only ever see the canonical name.
func aliases() map[string]string {
	return map[string]string{
		"Bash":              "bash",
		"ShellCommand":      "bash",
		"shell_command":     "bash",
		"RunShellCommand":   "bash",
		"run_shell_command": "bash",
		"ExecCommand":       "bash",
		"exec_command":      "bash",
		"Read":              "read_file",
		"ReadFile":          "read_file",
		"Write":             "write_file",
		"WriteFile":         "write_file",
		"Edit":              "edit_file",
		"Replace":           "edit_file",
		"replace":           "edit_file",
		"BashOutput":        "bash_output",
		"KillBash":          "bash_kill",
		"KillShell":         "bash_kill",
	}
}

// Registry holds the tools of a daemon by name. It is constant once made and
// may be used concurrently.
type Registry struct {
	order   []Tool
	byName  map[string]Tool
	aliases map[string]string
}

// NewRegistry makes a Registry. A name must be lower-case letters, digits and
// underscores, used once, and no alias of another tool.
func NewRegistry(tools ...Tool) (*Registry, error) {
	valid := regexp.MustCompile(`^[a-z][a-z0-9_]{0,63}$`)
	r := &Registry{byName: make(map[string]Tool), aliases: aliases()}
	for _, tool := range tools {
		name := tool.Definition().Name
		switch {
		case !valid.MatchString(name):
			return nil, fmt.Errorf("cannot register tool %q: the name must be lower-case letters, digits and underscores, at most 64", name)
		case r.byName[name] != nil:
			return nil, fmt.Errorf("cannot register tool %q: the name is taken", name)
		case r.aliases[name] != "":
			return nil, fmt.Errorf("cannot register tool %q: the name is an alias of %s", name, r.aliases[name])
		}
		r.byName[name] = tool
		r.order = append(r.order, tool)
	}
	return r, nil
}

// Lookup finds a tool by its name or an alias, case included, and tells its
// canonical name.
func (r *Registry) Lookup(name string) (tool Tool, canonical string, ok bool) {
	canonical = name
	if target := r.aliases[name]; target != "" {
		canonical = target
	}
	tool, ok = r.byName[canonical]
	if !ok {
		return nil, "", false
	}
	return tool, canonical, true
}

// Definitions lists the tools in the order in which they were registered.
func (r *Registry) Definitions() []Definition {
	list := make([]Definition, len(r.order))
	for i, tool := range r.order {
		list[i] = tool.Definition()
	}
	return list
}
