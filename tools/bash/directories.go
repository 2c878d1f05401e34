package bash

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/toold/toold/policy"
	"github.com/toold/toold/shell/programs"
)

// found returns what a path in a line of output may be. The script may have printed a relative path in any directory
// in which the program that the line names ran, or else any program.
func (v *invocation) found(path, line string) (all []string) {
	if filepath.IsAbs(path) {
		return []string{path}
	}
	var named, ran []string
	for _, e := range v.effects {
		if e.Kind != policy.Exec || len(e.Argv) == 0 {
			continue
		}
		c := programs.Parse(e.Argv)
		dirs := directories(&c, e.Dirs)
		ran = append(ran, dirs...)
		if says(c.Name, line) {
			named = append(named, dirs...)
		}
	}
	if len(named) > 0 {
		ran = named
	}
	if len(ran) == 0 {
		ran = []string{v.dir}
	}
	slices.Sort(ran)
	for _, dir := range slices.Compact(ran) {
		all = append(all, dir+"/"+path)
	}
	return all
}

// says reports whether a program, such as git, begins its messages as a line begins.
func says(program, line string) bool {
	first, _, _ := strings.Cut(line, ":")
	if program == "git" {
		return slices.Contains([]string{"error", "fatal", "warning"}, first)
	}
	return first != "" && first == program
}

// directories returns where a command works that starts in one of dirs, after its flags -C.
func directories(c *programs.Command, dirs []string) []string {
	out := slices.Clone(dirs)
	if c.Name != "git" && c.Name != "make" {
		return out
	}
	for _, f := range c.Flags {
		if f.Name != "-C" || !f.HasValue {
			continue
		}
		if f.Value.Dynamic {
			return nil
		}
		for i, dir := range out {
			out[i] = absolute(f.Value.Text, dir)
		}
	}
	return out
}
