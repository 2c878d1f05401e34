package codex

import (
	"encoding/json"
	"errors"
	"maps"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/toold/toold/internal/dispatch"
	"github.com/toold/toold/message"
	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/tools/files"
)

const codeMissing = -32004

func missing() *rpcError { return &rpcError{codeMissing, "No such file or directory (os error 2)"} }

type pathParams struct {
	Path    string          `json:"path"`
	Sandbox json.RawMessage `json:"sandbox"`
}

type file struct {
	path  string
	limit sandbox.Limit
}

func (p pathParams) file() (f file, e *rpcError) {
	if f.path, e = pathOf(p.Path); e == nil {
		f.limit, e = limitOf(p.Sandbox)
	}
	return f, e
}

func (c *Connection) fileOp(f file, op string, more map[string]any) (s files.LookResult, e *rpcError) {
	arguments := map[string]any{"op": op, "file_path": f.path}
	maps.Copy(arguments, more)
	sub := c.submission(f.limit, message.NewID("codex-file"), "look", arguments)
	for {
		series, err := c.session.readSeries(sub)
		if err == nil {
			s, err = lookIn(series, sub)
		}
		lookErr, judged := errors.AsType[*dispatch.LookError](err)
		switch {
		case errors.Is(err, dispatch.ErrLookOver):
			continue
		case errors.Is(err, dispatch.ErrAsks) && more["limit"] == 0:
			return s, nil // nothing is read
		case errors.Is(err, dispatch.ErrAsks) && op == "read":
			return c.readWithApproval(f, arguments)
		case err == nil && s.Missing:
			return s, missing()
		case err == nil:
			return s, nil
		case judged && op == "read":
			return s, refuse("%s", lookErr.Text)
		}
		// Codex searches all parent directories for its files, so denied ones count as missing, without approval.
		return s, missing()
	}
}

func lookIn(series *dispatch.Look, sub dispatch.Submission) (s files.LookResult, err error) {
	result, err := series.At(sub)
	if err != nil {
		return s, err
	}
	return s, json.Unmarshal([]byte(result.Text), &s)
}

func (c *Connection) runCall(f file, tool string, arguments map[string]any) (*message.ToolReturn, *rpcError) {
	sub := c.submission(f.limit, message.NewID("codex-file"), tool, arguments)
	sub.Near = filepath.Dir(f.path)
	c.session.endSeries()
	wake := make(chan struct{}, 1)
	sub.Wake = func() { notify(wake) }
	w := c.srv.opt.Dispatch.Submit(sub)
	defer w.Detach()
	seen, gone := 0, c.closed
	for {
		select {
		case <-wake:
		case <-gone:
			w.Call().Cancel("Codex went away")
			gone = nil
		}
		for _, event := range w.Call().Events(seen) {
			seen++
			if final, ok := event.(dispatch.Final); ok {
				c.srv.opt.Dispatch.Delivered(w.Call())
				return outcome(final)
			}
		}
	}
}

func outcome(f dispatch.Final) (*message.ToolReturn, *rpcError) {
	switch {
	case f.Return == nil:
		return nil, refuse("%s", f.Err.Message)
	case f.Return.Status == "success" && f.Return.Decision.IsEdited():
		return nil, refuse("%s", f.Return.Result) // Codex would assume that its own arguments were used
	case f.Return.Status == "success":
		return f.Return, nil
	case strings.Contains(f.Return.Result, "No such file or directory"):
		return nil, missing()
	}
	return nil, refuse("%s", strings.TrimPrefix(f.Return.Result, "Error: "))
}

func (c *Connection) getMetadata(f file, _ pathParams) (any, *rpcError) {
	s, e := c.fileOp(f, "stat", nil)
	if e != nil {
		return nil, e
	}
	return object{
		"isDirectory": s.Kind == "directory", "isFile": s.Kind == "file", "isSymlink": s.Link,
		"size": s.Size, "createdAtMs": 0, "modifiedAtMs": s.Modified,
	}, nil
}

func (c *Connection) canonicalize(f file, _ pathParams) (any, *rpcError) {
	s, e := c.fileOp(f, "stat", nil)
	return object{"path": uriOf(s.Path)}, e
}

func (c *Connection) readFile(f file, _ pathParams) (any, *rpcError) {
	s, e := c.fileOp(f, "read", nil)
	if e != nil {
		return nil, e
	}
	return object{"dataBase64": append([]byte{}, s.Data...)}, nil
}

// Limits of an answer that lists files, in bytes: the names and URIs, and the remaining size of an entry.
const (
	listBytes  = 4 << 20
	entryBytes = 64
)

type directoryEntry struct {
	Name        string `json:"fileName"`
	IsDirectory bool   `json:"isDirectory"`
	IsFile      bool   `json:"isFile"`
}

func (c *Connection) readDirectory(f file, _ pathParams) (any, *rpcError) {
	s, e := c.fileOp(f, "list", nil)
	if e != nil {
		return nil, e
	}
	entries, size := make([]directoryEntry, 0, len(s.Entries)), 0
	for _, n := range s.Entries {
		entries = append(entries, directoryEntry{n.Name, n.Kind == "directory", n.Kind == "file"})
		size += len(n.Name) + entryBytes
	}
	if s.More || size > listBytes {
		return nil, refuse("%s has more names than one answer lists; list it with a command", f.path)
	}
	return object{"entries": entries}, nil
}

type walkParams struct {
	pathParams
	Options struct {
		MaxDepth                int  `json:"maxDepth"`
		MaxDirectories          int  `json:"maxDirectories"`
		MaxEntries              int  `json:"maxEntries"`
		FollowDirectorySymlinks bool `json:"followDirectorySymlinks"`
	} `json:"options"`
}

const (
	maxDirectories = 10_000
	maxEntries     = 100_000
)

type walkEntry struct {
	Path string `json:"path"`
	Kind string `json:"kind"`
}

// walk lists the files below a directory, level by level. It does not follow links.
func (c *Connection) walk(root file, a walkParams) (any, *rpcError) {
	entryLimit, dirsLeft := min(max(a.Options.MaxEntries, 0), maxEntries), min(max(a.Options.MaxDirectories, 0), maxDirectories)
	entries, failed, truncated, size := []walkEntry{}, []object{}, false, 0
	for level, depth := []string{root.path}, 0; len(level) > 0 && depth < a.Options.MaxDepth; depth++ {
		var below []string
		for _, dir := range level {
			if dirsLeft--; truncated || dirsLeft < 0 {
				truncated = true
				break
			}
			s, e := c.fileOp(file{dir, root.limit}, "list", nil)
			if e != nil && dir == root.path {
				return nil, e
			}
			if e != nil {
				failed = append(failed, object{"path": uriOf(dir), "message": e.Message})
				size += len(dir) + len(e.Message) + entryBytes
			}
			truncated = s.More
			for _, n := range s.Entries {
				entry := walkEntry{uriOf(filepath.Join(dir, n.Name)), n.Kind}
				if size += len(entry.Path) + entryBytes; len(entries) == entryLimit || size > listBytes {
					truncated = true
					break
				}
				entries = append(entries, entry)
				if n.Kind == "directory" {
					below = append(below, filepath.Join(dir, n.Name))
				}
			}
		}
		level = below
	}
	return object{"entries": entries, "errors": failed, "truncated": truncated}, nil
}

type handleParams struct {
	HandleID ident `json:"handleId"`
}

type openParams struct {
	handleParams
	pathParams
}

type blockParams struct {
	HandleID ident `json:"handleId"`
	Offset   int64 `json:"offset"`
	Len      int64 `json:"len"`
}

const maxHandles = 128

// open opens a file for readBlock. A handle is only a path: each block is decided on and read separately.
func (c *Connection) open(f file, a openParams) (any, *rpcError) {
	if _, e := c.fileOp(f, "read", map[string]any{"limit": 0}); e != nil {
		return nil, e
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	_, taken := c.handles[string(a.HandleID)]
	switch {
	case a.HandleID == "" || taken:
		return nil, refuse("the handle %q is taken or empty", a.HandleID)
	case len(c.handles) == maxHandles:
		return nil, refuse("%d files are open already", maxHandles)
	}
	c.handles[string(a.HandleID)] = f
	return a.handleParams, nil
}

func (c *Connection) readBlock(a blockParams) (any, *rpcError) {
	c.mu.Lock()
	f, ok := c.handles[string(a.HandleID)]
	c.mu.Unlock()
	if !ok {
		return nil, refuse("unknown file handle %q", a.HandleID)
	}
	s, e := c.fileOp(f, "read", map[string]any{"offset": max(a.Offset, 0), "limit": min(max(a.Len, 0), readBytes)})
	if e != nil {
		return nil, e
	}
	return object{"chunk": append([]byte{}, s.Data...), "eof": s.EOF}, nil
}

func (c *Connection) closeFile(a handleParams) (any, *rpcError) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.handles, string(a.HandleID))
	return struct{}{}, nil
}

type contentParams struct {
	pathParams
	DataBase64 []byte `json:"dataBase64"`
}

func (c *Connection) writeFile(f file, a contentParams) (any, *rpcError) {
	if !utf8.Valid(a.DataBase64) {
		return nil, refuse("%s was not written: its content is no text; write such a file with a command", f.path)
	}
	_, e := c.runCall(f, "write_file", map[string]any{"file_path": f.path, "content": string(a.DataBase64)})
	return struct{}{}, e
}

// script runs a command that changes f.
func (c *Connection) script(f file, argv ...string) (any, *rpcError) {
	_, e := c.runCall(f, "bash", map[string]any{"command": script(argv), "terminal": "off"})
	return struct{}{}, e
}

type directoryParams struct {
	pathParams
	Recursive bool `json:"recursive"`
}

func (c *Connection) createDirectory(f file, a directoryParams) (any, *rpcError) {
	if a.Recursive {
		return c.script(f, "mkdir", "-p", "--", f.path)
	}
	return c.script(f, "mkdir", "--", f.path)
}

type removeParams struct {
	directoryParams
	Force bool `json:"force"`
}

func (c *Connection) remove(f file, a removeParams) (any, *rpcError) {
	argv := []string{"rm", "-d"}
	if a.Recursive {
		argv[1] = "-r"
	}
	if a.Force {
		argv = append(argv, "-f")
	}
	return c.script(f, append(argv, "--", f.path)...)
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
	if s, e := c.fileOp(f, "stat", nil); e == nil && s.Kind == "other" {
		return nil, refuse("%s is no file and no directory, so it is not copied", f.path)
	}
	if a.Recursive {
		return c.script(file{to, f.limit}, "cp", "-R", "-T", "--", f.path, to)
	}
	return c.script(file{to, f.limit}, "cp", "-T", "--", f.path, to)
}
