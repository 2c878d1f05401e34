package codex

import (
	"encoding/json"
	"fmt"

	"github.com/toold/toold/tools/files"
)

// takeRequestSlot takes the slot and the memory that a request of so many bytes needs, if any. It returns why it may
// not, or "".
func (c *Connection) takeRequestSlot(r *request, size int64) (full string) {
	mayBlock := r.Method == "process/start" || blocking[r.Method] != nil
	if !mayBlock || c.session == nil {
		return ""
	}
	select {
	case c.requestSlots <- struct{}{}:
		r.slots = c.requestSlots
	default:
		return fmt.Sprintf("%d requests of this connection are not answered yet, and no more may be", maxRequests)
	}
	if !c.charge(size) {
		return "the requests that are not answered yet are too large together (limits.incoming_bytes)"
	}
	r.size = size
	return ""
}

// charge adds to the bytes of unanswered requests. It returns false if there would be too many.
func (c *Connection) charge(more int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left || !c.keep(c.kept+more) {
		return false
	}
	c.kept += more
	return true
}

// takeContentSlot returns false if the connection ends. Then it has taken no slot that others share.
func (c *Connection) takeContentSlot() bool {
	select {
	case c.contentSlots <- struct{}{}:
	case <-c.closed:
		return false
	}
	select {
	case c.shared <- struct{}{}:
	case <-c.closed:
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.contents++
	return true
}

func (c *Connection) releaseContent() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.contents == 0 {
		return // after readWithApproval, if the connection has ended
	}
	c.contents--
	<-c.shared
	<-c.contentSlots
}

// readWithApproval reads a file by a call of look, which awaits approval. It releases the content slot meanwhile.
func (c *Connection) readWithApproval(f file, arguments map[string]any) (s files.LookResult, e *rpcError) {
	c.releaseContent()        // approval may take long
	defer c.takeContentSlot() // fails only after the end of the connection
	ret, e := c.runCall(f, "look", arguments)
	if e != nil {
		return s, e
	}
	if err := json.Unmarshal([]byte(ret.Result), &s); err != nil {
		return s, refuse("the content cannot be read: %v", err)
	}
	if s.Missing {
		return s, missing()
	}
	return s, nil
}
