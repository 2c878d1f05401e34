//go:build linux && (amd64 || arm64)

package helper

import (
	"errors"
	"os"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"
)

// errRefused means that the broker refused; other errors are the kernel's.
var errRefused = refusedError{}

type refusedError struct{}

func (refusedError) Error() string { return "the socket is the machine's: permission denied" }
func (refusedError) Unwrap() error { return unix.EACCES }

const maxRefusals = 16

// refusals reports each refused socket to the daemon once, before the program gets its error.
type refusals struct {
	mu       sync.Mutex
	reported map[string]bool
}

func (r *refusals) note(c *connection, err error) {
	if !errors.Is(err, errRefused) {
		return
	}
	name := c.name()
	r.mu.Lock()
	fresh := name != "" && !r.reported[name] && len(r.reported) < maxRefusals
	if fresh {
		if r.reported == nil {
			r.reported = map[string]bool{}
		}
		r.reported[name] = true
	}
	r.mu.Unlock()
	if fresh {
		send(Event{Kind: EventRefused, Text: name})
	}
}

// name returns the path of the socket in the call, or "@" and its abstract name (unix(7)).
func (c *connection) name() string {
	if c.file >= 0 {
		path, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(c.file))
		if err != nil {
			return ""
		}
		return path
	}
	if len(c.address) < 3 {
		return ""
	}
	return "@" + string(c.address[3:])
}
