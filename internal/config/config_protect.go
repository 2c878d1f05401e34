package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/toold/toold/policy"
)

const presetAutorun = "preset:autorun"

func (l *loader) protected(list []scalar) []string {
	if list == nil {
		list = []scalar{{text: presetAutorun, set: true}}
	}
	names := []string{}
	for i, s := range list {
		key := fmt.Sprintf("sandbox.protect[%d]", i)
		var name string
		l.text(&name, s, key)
		switch {
		case name == presetAutorun:
			names = append(names, policy.Autorun()...)
		case name == "":
		case !protectable(name):
			l.fail(s, "%s cannot be %q: expected %s, a name such as .envrc, a file in a directory such as .cargo/config.toml, or one of git's own: %s; it counts in the workspace and the directories of sandbox.write, at any depth",
				key, name, presetAutorun, strings.Join(gitNames(), ", "))
		default:
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func protectable(name string) bool {
	if strings.HasPrefix(name, ".git/") {
		return slices.Contains(gitNames(), name)
	}
	parts := strings.Split(name, "/")
	bad := func(part string) bool {
		return part == "" || part == "." || part == ".." || strings.ContainsAny(part, "*?[{:")
	}
	return len(parts) <= 2 && !slices.ContainsFunc(parts, bad)
}

func gitNames() []string {
	return slices.DeleteFunc(policy.Autorun(), func(name string) bool { return !strings.HasPrefix(name, ".git/") })
}
