package policy

import (
	"slices"
	"strings"
	"sync"
)

// programs are the names that the built-in tables know, in order.
var programs = sync.OnceValue(func() []string {
	var names []string
	for name := range table() {
		program, _, _ := strings.Cut(name, " ")
		names = append(names, program)
	}
	for _, list := range []map[string]string{unsafeFlags, globalOptions, inlineCode, codeFlags, starters} {
		for name := range list {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
})

// NearProgram returns the well-known program that was probably meant by a name
// that is none, or "": one in which two letters are swapped, or one letter is
// missing, added or another. It is for warnings and safe for concurrent use.
func NearProgram(name string) string {
	if table().knows(name) || slices.Contains(programs(), name) {
		return ""
	}
	for _, known := range programs() {
		if swapped(name, known) || min(len(name), len(known)) > 3 && oneApart(name, known) {
			return known
		}
	}
	return ""
}

// swapped reports whether two names differ in the order of two neighbours.
func swapped(a, b string) bool {
	for i := range max(len(a)-1, 0) {
		if len(a) == len(b) && a[i] != b[i] {
			return a[i] == b[i+1] && a[i+1] == b[i] && a[i+2:] == b[i+2:]
		}
	}
	return false
}

// oneApart reports whether two names differ in one letter.
func oneApart(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	for i := range len(a) {
		if a[i] != b[i] {
			return a[i:] == b[i+1:] || len(a) == len(b) && a[i+1:] == b[i+1:]
		}
	}
	return len(a)+1 == len(b)
}
