package codex

import (
	"encoding/json"
	"unicode/utf8"

	"github.com/toold/toold/sandbox"
)

type contentParams struct {
	Path       string          `json:"path"`
	DataBase64 []byte          `json:"dataBase64"`
	Sandbox    json.RawMessage `json:"sandbox"`
}

func (c *Connection) writeFile(params json.RawMessage) (any, *rpcError) {
	var a contentParams
	if e := decode(params, &a); e != nil {
		return nil, e
	}
	f, e := pathParams{a.Path, a.Sandbox}.file()
	if e != nil {
		return nil, e
	}
	if !utf8.Valid(a.DataBase64) {
		return nil, refuse("%s was not written: its content is no text; write such a file with a command", f.path)
	}
	_, e = c.call(f.limit, "write_file", map[string]any{"file_path": f.path, "content": string(a.DataBase64)})
	return struct{}{}, e
}

// script runs a command for a change that no file tool makes: it is judged, confined and
// recorded as any command is.
func (c *Connection) script(limit sandbox.Limit, argv ...string) (any, *rpcError) {
	_, e := c.call(limit, "bash", map[string]any{"command": script(argv), "terminal": "off"})
	return struct{}{}, e
}

type directoryParams struct {
	Path      string          `json:"path"`
	Recursive *bool           `json:"recursive"`
	Sandbox   json.RawMessage `json:"sandbox"`
}

func (c *Connection) createDirectory(params json.RawMessage) (any, *rpcError) {
	var a directoryParams
	if e := decode(params, &a); e != nil {
		return nil, e
	}
	f, e := pathParams{a.Path, a.Sandbox}.file()
	if e != nil {
		return nil, e
	}
	if a.Recursive != nil && *a.Recursive {
		return c.script(f.limit, "mkdir", "-p", "--", f.path)
	}
	return c.script(f.limit, "mkdir", "--", f.path)
}

type removeParams struct {
	Path      string          `json:"path"`
	Recursive *bool           `json:"recursive"`
	Force     *bool           `json:"force"`
	Sandbox   json.RawMessage `json:"sandbox"`
}

func (c *Connection) remove(params json.RawMessage) (any, *rpcError) {
	var a removeParams
	if e := decode(params, &a); e != nil {
		return nil, e
	}
	f, e := pathParams{a.Path, a.Sandbox}.file()
	if e != nil {
		return nil, e
	}
	argv := []string{"rm", "-d"}
	if a.Recursive != nil && *a.Recursive {
		argv[1] = "-r"
	}
	if a.Force != nil && *a.Force {
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

func (c *Connection) copy(params json.RawMessage) (any, *rpcError) {
	var a copyParams
	if e := decode(params, &a); e != nil {
		return nil, e
	}
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
