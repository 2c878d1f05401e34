package codex

import (
	"encoding/json"
	"unicode/utf8"

	"github.com/toold/toold/sandbox"
)

type contentParams struct {
	pathParams
	DataBase64 []byte `json:"dataBase64"`
}

func (c *Connection) writeFile(f file, a contentParams) (any, *rpcError) {
	if !utf8.Valid(a.DataBase64) {
		return nil, refuse("%s was not written: its content is no text; write such a file with a command", f.path)
	}
	_, e := c.call(f.limit, "write_file", map[string]any{"file_path": f.path, "content": string(a.DataBase64)})
	return struct{}{}, e
}

// script runs a command for a change that no file tool makes: it is judged, confined and
// recorded as any command is.
func (c *Connection) script(limit sandbox.Limit, argv ...string) (any, *rpcError) {
	_, e := c.call(limit, "bash", map[string]any{"command": script(argv), "terminal": "off"})
	return struct{}{}, e
}

type directoryParams struct {
	pathParams
	Recursive *bool `json:"recursive"`
}

func is(flag *bool) bool { return flag != nil && *flag }

func (c *Connection) createDirectory(f file, a directoryParams) (any, *rpcError) {
	if is(a.Recursive) {
		return c.script(f.limit, "mkdir", "-p", "--", f.path)
	}
	return c.script(f.limit, "mkdir", "--", f.path)
}

type removeParams struct {
	directoryParams
	Force *bool `json:"force"`
}

func (c *Connection) remove(f file, a removeParams) (any, *rpcError) {
	argv := []string{"rm", "-d"}
	if is(a.Recursive) {
		argv[1] = "-r"
	}
	if is(a.Force) {
		argv = append(argv, "-f")
	}
	return c.script(f.limit, append(argv, "--", f.path)...)
}

type copyParams struct {
	SourcePath      string          `json:"sourcePath"`
	DestinationPath string          `json:"destinationPath"`
	Recursive       bool            `json:"recursive"`
	Sandbox         json.RawMessage `json:"sandbox"`
}

func (c *Connection) copy(a copyParams) (any, *rpcError) {
	to, e := pathOf(a.DestinationPath)
	if e != nil {
		return nil, e
	}
	f, e := pathParams{a.SourcePath, a.Sandbox}.file()
	if e != nil {
		return nil, e
	}
	if a.Recursive {
		return c.script(f.limit, "cp", "-R", "-T", "--", f.path, to)
	}
	return c.script(f.limit, "cp", "-T", "--", f.path, to)
}
