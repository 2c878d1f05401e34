//go:build linux && (amd64 || arm64)

package helper

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"
)

// errRefused is the broker's own no; other errors are the kernel's.
var errRefused = fmt.Errorf("the socket is the machine's: %w", unix.EACCES)

// maxRefusals is how many sockets the daemon is told of.
const maxRefusals = 16

// refusals reports refused sockets to the daemon, each once, before the program's error.
type refusals struct {
	mu   sync.Mutex
	told map[string]bool
}

// note tells of a connection that ended with err, if that was the broker's no.
func (r *refusals) note(c *connection, err error) {
	if !errors.Is(err, errRefused) {
		return
	}
	name := c.name()
	r.mu.Lock()
	fresh := name != "" && !r.told[name] && len(r.told) < maxRefusals
	if fresh {
		if r.told == nil {
			r.told = map[string]bool{}
		}
		r.told[name] = true
	}
	r.mu.Unlock()
	if fresh {
		send(Event{Kind: EventRefused, Text: name})
	}
}

// name is the path of the socket in the call, or "@" and its name (unix(7)).
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
