// Package lazyregexp compiles regular expressions at their first use, so that a process does not compile at its start
// those that it never uses.
package lazyregexp

import (
	"regexp"
	"sync"
)

// New returns a function that returns a compiled expression (regexp.MustCompile). It is safe for concurrent use.
func New(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
