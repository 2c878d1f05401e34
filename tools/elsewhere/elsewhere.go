// Package elsewhere provides the tool judge, which decides on and records a call that another program executes.
package elsewhere

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/toold/toold/internal/display"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/shell/programs"
	"github.com/toold/toold/tools"
	"github.com/toold/toold/tools/argument"
)

// New returns the tool. Build uses registry to find the tools that analyse scripts and paths.
func New(registry func() *tools.Registry) tools.Tool { return tool{registry} }

type tool struct{ registry func() *tools.Registry }

type arguments struct {
	Program string          `json:"program"`
	Tool    string          `json:"tool"`  // the program's name for the tool
	Dir     string          `json:"cwd"`   // absolute; for relative paths
	Input   json.RawMessage `json:"input"` // for the record

	Command json.RawMessage `json:"command"` // script or list of words
	In      string          `json:"in"`      // directory of Command; Program may ignore it and use Dir
	Read    []string        `json:"read"`
	Write   []string        `json:"write"`  // files created, changed, moved or removed
	Search  []string        `json:"search"` // directories read recursively
	Part    string          `json:"part"`   // see policy.Effect
	Hosts   []string        `json:"hosts"`
	Other   bool            `json:"other"` // nothing but its name is known
	// Harmless: only rules for its name apply.
	Harmless bool `json:"harmless"`
	// Unclear says why the program may understand Input differently than toold.
	Unclear string `json:"unclear"`
}

func (t tool) Definition() tools.Definition {
	return tools.Definition{Name: "judge", Description: "Decides a call that another program carries out.", Parameters: json.RawMessage(`{"type":"object"}`), Hidden: true}
}

// decode decodes arguments, which are written by toold's own hooks.
func decode(args json.RawMessage) (a arguments, err error) {
	d := json.NewDecoder(bytes.NewReader(args))
	d.DisallowUnknownFields()
	switch err := d.Decode(&a); {
	case err != nil:
		return a, &argument.Error{Problem: err.Error()}
	case a.Program == "" || a.Tool == "":
		return a, &argument.Error{Problem: "program and tool are missing"}
	case a.Unclear != "":
		return a, &argument.Error{Problem: a.Unclear}
	case !filepath.IsAbs(a.Dir):
		return a, &argument.Error{Field: "cwd", Problem: "expected an absolute path"}
	}
	return a, nil
}

func (t tool) Location(args json.RawMessage) (paths []string, runs bool) {
	a, err := decode(args)
	if err != nil {
		return nil, true
	}
	return []string{a.Dir}, true
}

func (t tool) Build(args json.RawMessage) (tools.Invocation, error) {
	a, err := decode(args)
	if err != nil {
		return nil, err
	}
	v := verdict{arguments: a}
	if a.Other || a.Harmless {
		name := []policy.Word{{Text: "tool"}, {Text: a.Tool}}
		v.effects = append(v.effects, policy.Effect{Kind: policy.Exec, Argv: name, Dirs: []string{a.Dir}, Possible: !a.Other})
	}
	for _, host := range a.Hosts {
		v.effects = append(v.effects, policy.Effect{Kind: policy.Net, Host: programs.CleanHost(host)})
	}
	for _, path := range slices.Concat(a.Read, a.Write, a.Search) {
		if strings.HasPrefix(path, "~") && path != "~" && !strings.HasPrefix(path, "~/") {
			return nil, &argument.Error{Problem: fmt.Sprintf("%q may be in the home of another user; write the path in full", path)}
		}
	}
	for _, p := range a.parts() {
		if err := v.add(t.registry(), p); err != nil {
			return nil, err
		}
	}
	if len(v.effects) == 0 {
		v.effects = []policy.Effect{{Kind: policy.Opaque, Why: "what " + a.Tool + " does"}}
	}
	return v, nil
}

type part struct {
	tool      string
	arguments map[string]any
	change    func(*policy.Effect) // called for each effect; may be nil
}

func (a arguments) parts() (list []part) {
	if len(a.Command) > 0 {
		// The program's PATH may differ from toold's.
		known := func(e *policy.Effect) { e.Absent = false }
		for _, dir := range slices.Compact([]string{a.Dir, a.path(a.In)}) {
			list = append(list, part{"shell", map[string]any{"command": a.Command, "cwd": dir}, known})
		}
	}
	add := func(paths []string, tool, field, value string, change func(*policy.Effect)) {
		for _, path := range paths {
			list = append(list, part{tool, map[string]any{"file_path": a.path(path), field: value}, change})
		}
	}
	add(a.Write, "write_file", "content", "", nil)
	add(a.Read, "look", "op", "stat", nil)
	add(a.Search, "look", "op", "list", func(e *policy.Effect) { e.Tree, e.Part = true, a.Part })
	return list
}

// path resolves a path in the program's directory.
func (a arguments) path(path string) string {
	switch {
	case path == "~":
		return "~/"
	case filepath.IsAbs(path) || strings.HasPrefix(path, "~/"):
		return path
	}
	return filepath.Join(a.Dir, path)
}

type verdict struct {
	arguments
	effects []policy.Effect
	shown   string
}

func (v *verdict) add(registry *tools.Registry, p part) error {
	text, err := json.Marshal(p.arguments)
	if err != nil {
		return err
	}
	inner, _, ok := registry.Lookup(p.tool)
	if !ok {
		return fmt.Errorf("there is no tool %s", p.tool)
	}
	inv, err := inner.Build(text)
	if err != nil {
		return err
	}
	for _, e := range inv.Effects() {
		if p.change != nil {
			p.change(&e)
		}
		v.effects = append(v.effects, e)
	}
	if p.tool == "shell" {
		v.shown = inv.Text()
	}
	return nil
}

// Cwd returns the directory of the program.
func (v verdict) Cwd() string { return v.Dir }

func (v verdict) Traits() tools.Traits { return tools.Traits{ReadOnly: true, Elsewhere: true} }

func (v verdict) Effects() []policy.Effect { return v.effects }

// Fed returns the arguments besides the words of the Exec effects: all of them or, for a command, those besides it
// that may change what it does.
func (v verdict) Fed() string {
	if v.Other || v.Harmless {
		return string(v.Input)
	}
	rest := v.rest()
	maps.DeleteFunc(rest, func(name string, value json.RawMessage) bool {
		_, err := strconv.ParseFloat(string(value), 64) // such as a time limit
		return err == nil || name == "description" || name == "justification"
	})
	return encode(rest)
}

// rest returns the arguments besides the command, or nil without a command.
func (v verdict) rest() (rest map[string]json.RawMessage) {
	if len(v.Command) == 0 || json.Unmarshal(v.Input, &rest) != nil {
		return nil
	}
	maps.DeleteFunc(rest, func(_ string, value json.RawMessage) bool { return bytes.Equal(value, v.Command) })
	return rest
}

func encode(rest map[string]json.RawMessage) string {
	if len(rest) == 0 {
		return ""
	}
	text, _ := json.Marshal(rest) // cannot fail for valid values
	return string(text)
}

func (v verdict) Text() string {
	text := cmp.Or(v.shown, string(v.Input))
	if rest := encode(v.rest()); rest != "" {
		text += "\nwith " + rest
	}
	return display.Visible(fmt.Sprintf("%s of %s, outside of toold's sandbox: %s", v.Tool, v.Program, text))
}

func (v verdict) Execute(context.Context, tools.IO) tools.Result {
	return tools.Result{Text: v.Program + " may carry it out."}
}
