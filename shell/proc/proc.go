// Package proc knows what names below /proc lead to: they refer to the process that opens them, so that the daemon cannot
// resolve them.
package proc

import (
	"slices"
	"strings"

	"github.com/toold/toold/internal/paths"
)

// Dir is the directory.
const Dir = "/proc"

// Kind is what a name leads to.
type Kind int

// The kinds of names.
const (
	Plain     Kind = iota // the same file for every process
	Any                   // may be any file of the machine
	Directory             // has entries for files of processes
	Cwd
	Root
	Input
	Output
)

var (
	links = map[string]string{"thread-self": "self/task/self", "net": "self/net", "mounts": "self/mounts"}
	own   = map[string]Kind{"cwd": Cwd, "root": Root, "fd/0": Input, "fd/1": Output, "fd/2": Output}
)

// devLinks are names in /dev that lead into /proc, whether or not they are links on this machine.
var devLinks = map[string]string{"/dev/fd": "/proc/self/fd", "/dev/stdin": "/proc/self/fd/0", "/dev/stdout": "/proc/self/fd/1", "/dev/stderr": "/proc/self/fd/2"}

// Holds reports whether a path is below /proc.
func Holds(canonical string) bool { return paths.Within(canonical, Dir) }

// Of returns the kind of a path.
func Of(canonical string) Kind {
	if !Holds(canonical) {
		return Plain
	}
	kind, _ := Path(strings.TrimPrefix(canonical, Dir))
	return kind
}

// Path resolves a path below /proc. After Cwd and Root, path is relative to them.
func Path(below string) (kind Kind, path string) {
	var names []string
	for rest := below; rest != ""; {
		var name string
		name, rest, _ = strings.Cut(rest, "/")
		top := len(names) - 1
		switch {
		case name == "" || name == ".":
			continue
		case name == ".." && top < 0:
			return Root, rest
		case name == "..":
			names = names[:top]
			continue
		case links[name] != "" && top < 0:
			rest = links[name] + "/" + rest
			continue
		}
		names = append(names, name)
		switch kind = kindOf(names); {
		case kind == Cwd || kind == Root:
			return kind, strings.TrimLeft(rest, "/")
		case kind == Any, rest != "" && (kind == Input || kind == Output):
			return Any, ""
		}
	}
	return kindOf(names), strings.Join(append([]string{Dir}, names...), "/")
}

func kindOf(names []string) Kind {
	if len(names) == 0 {
		return Directory
	}
	self := names[0] == "self"
	if !self && strings.Trim(names[0], "0123456789") != "" {
		return Plain
	}
	names = names[1:]
	for len(names) > 1 && names[0] == "task" {
		names = names[2:]
	}
	file := strings.Join(names, "/")
	switch {
	case file == "" || slices.Contains([]string{"fd", "map_files", "task"}, file):
		return Directory
	case self && own[file] != Plain:
		return own[file]
	case slices.Contains([]string{"cwd", "root", "exe", "fd", "map_files"}, names[0]):
		return Any
	}
	return Plain
}

// Begins reports whether a path with this prefix may lead into /proc.
func Begins(canonical string) bool {
	proc := len(canonical) > 1 && strings.HasPrefix(Dir, canonical)
	return proc || len(canonical) > len("/d") && strings.HasPrefix("/dev/fd", canonical)
}

// OfDevice replaces a path in /dev that leads into /proc.
func OfDevice(canonical string) string {
	if !strings.HasPrefix(canonical, "/dev/") {
		return canonical
	}
	for name, target := range devLinks {
		if rest, ok := strings.CutPrefix(canonical, name); ok && (rest == "" || rest[0] == '/') {
			return target + rest
		}
	}
	return canonical
}
