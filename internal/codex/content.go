package codex

import (
	"encoding/base64"

	"github.com/toold/toold/tools/files"
)

// content is an answer that holds content of a file, until it is written.
type content map[string]any

// load reads a part of a file, or all of it. While too much content waits to be written it
// waits. The caller returns a content, or calls unload.
func (c *Connection) load(f file, part map[string]any) (s files.Sight, e *rpcError) {
	select {
	case c.large <- struct{}{}:
	case <-c.gone:
		return s, refuse("the connection has ended")
	}
	if s, e = c.look(f, "read", part); e != nil {
		c.unload()
	}
	return s, e
}

func (c *Connection) unload() {
	select {
	case <-c.large:
	default: // see askToRead
	}
}

// askToRead reads a file about which a person decides.
func (c *Connection) askToRead(f file) (s files.Sight, e *rpcError) {
	c.unload() // a person may take long
	defer func() {
		select {
		case c.large <- struct{}{}:
		case <-c.gone: // and nothing more is read
		}
	}()
	ret, e := c.call(f.limit, "read_file", map[string]any{"file_path": f.path, "encoding": "base64"})
	if e != nil || ret.File == nil || ret.File.Bytes == 0 {
		return files.Sight{EOF: true}, e
	}
	data, err := base64.StdEncoding.DecodeString(ret.Result)
	if err != nil {
		return s, refuse("the content cannot be read: %v", err)
	}
	return files.Sight{Data: data, EOF: true}, nil
}
