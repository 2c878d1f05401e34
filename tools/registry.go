package tools

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/toold/toold/internal/spell"
)

// Registry has the tools by name. It is immutable and safe for concurrent use.
type Registry struct {
	order   []Tool
	byName  map[string]Tool
	aliases map[string]alias
}

// NewRegistry returns a Registry. Names must be unique, consist of lower-case letters, digits and underscores, and not
// be aliases.
func NewRegistry(tools ...Tool) (*Registry, error) {
	valid := regexp.MustCompile(`^[a-z][a-z0-9_]{0,63}$`)
	r := &Registry{byName: make(map[string]Tool), aliases: aliases()}
	for _, tool := range tools {
		def := tool.Definition()
		name := def.Name
		switch {
		case !valid.MatchString(name):
			return nil, fmt.Errorf("cannot register tool %q: the name must be lower-case letters, digits and underscores, at most 64", name)
		case r.byName[name] != nil:
			return nil, fmt.Errorf("cannot register tool %q: the name is taken", name)
		case r.aliases[name].tool != "":
			return nil, fmt.Errorf("cannot register tool %q: the name is an alias of %s", name, r.aliases[name].tool)
		}
		r.byName[name] = tool
		if !def.Hidden {
			r.order = append(r.order, tool)
		}
	}
	return r, nil
}

// Lookup returns a tool by its name or an alias, and its canonical name.
func (r *Registry) Lookup(name string) (tool Tool, canonical string, ok bool) {
	other, ok := r.aliases[name]
	if !ok {
		tool, ok = r.byName[name]
		return tool, name, ok
	}
	if tool, ok = r.byName[other.tool]; ok && other.adapt != nil {
		tool = adapted{tool, other.adapt}
	}
	return tool, other.tool, ok
}

// Unknown returns an error text for a tool name that does not exist.
func (r *Registry) Unknown(name string) string {
	var own, all []string
	for _, def := range r.Definitions() {
		own = append(own, def.Name)
	}
	all = append(all, own...)
	for other, a := range r.aliases {
		if r.byName[a.tool] != nil {
			all = append(all, other)
		}
	}
	slices.Sort(all)
	hint := spell.Nearest(name, all)
	if hint != "" {
		hint = fmt.Sprintf("did you mean %q? ", hint)
	}
	return fmt.Sprintf("unknown tool %q; %sthe tools are %s", name, hint, strings.Join(own, ", "))
}

// Definitions returns the tools' definitions in order of registration, except hidden ones.
func (r *Registry) Definitions() []Definition {
	list := make([]Definition, len(r.order))
	for i, tool := range r.order {
		list[i] = tool.Definition()
	}
	return list
}
