package codex

import (
	"encoding/json"
	"path/filepath"
	"slices"

	"github.com/toold/toold/internal/paths"
	"github.com/toold/toold/sandbox"
)

type sandboxContext struct {
	Permissions    exact[permissions] `json:"permissions"`
	Cwd            string             `json:"cwd"`
	WorkspaceRoots []string           `json:"workspaceRoots"`
}

type permissions struct {
	Type       string            `json:"type"`
	FileSystem exact[fileSystem] `json:"file_system"`
	Network    string            `json:"network"`
}

type fileSystem struct {
	Type    string         `json:"type"`
	Entries []exact[entry] `json:"entries"`
}

type entry struct {
	Path   exact[entryPath] `json:"path"`
	Access string           `json:"access"`
	// Missing says how Codex treats a path that does not exist. toold applies the rule when the path exists.
	Missing json.RawMessage `json:"missing_path_behavior"`
}

type entryPath struct {
	Type  string         `json:"type"`
	Path  string         `json:"path"`
	Value exact[special] `json:"value"`
}

type special struct {
	Kind    string `json:"kind"`
	Subpath string `json:"subpath"`
}

// maxPlaces limits the paths in the sandbox of a request: each takes mounts, and time to make them.
const maxPlaces = 1024

// limitOf converts the sandbox of a request. It refuses what toold cannot enforce.
func limitOf(raw json.RawMessage) (l sandbox.Limit, e *rpcError) {
	if isNull(raw) {
		return l, nil
	}
	var s sandboxContext
	if err := json.Unmarshal(raw, &s); err != nil {
		return l, badParams("the sandbox cannot be read: %v", err)
	}
	p := s.Permissions.V
	files := p.FileSystem.V
	switch p.Type {
	case "managed", "external":
	case "disabled":
		return l, nil
	default:
		return l, refuse("toold does not know the permissions %q; nothing was done", p.Type)
	}
	l.Offline = p.Network != "enabled"
	if files.Type == "unrestricted" || p.Type == "external" {
		return l, nil
	}
	if files.Type != "restricted" {
		return l, refuse("toold does not know a file system that is %q; nothing was done", files.Type)
	}
	l.Write = []string{}
	readsAll, places := false, 0
	for _, n := range files.Entries {
		if places += max(1, len(s.WorkspaceRoots)); places > maxPlaces {
			return l, refuse("this sandbox of Codex names more than %d paths, and no more may be; nothing was done", maxPlaces)
		}
		if e := s.apply(n.V, &l); e != nil {
			return l, e
		}
		path := n.V.Path.V
		isRoot := path.Type == "special" && path.Value.V == special{Kind: "root"}
		readsAll = readsAll || isRoot
	}
	if !readsAll {
		return l, refuse("this sandbox of Codex lets commands read only some directories, which toold cannot keep; nothing was done. Let it read everything, and say in toold's policy and sandbox.hide what may not be read")
	}
	// As in Codex, an entry that allows writing takes precedence over another one for the same path.
	l.ReadOnly = slices.DeleteFunc(l.ReadOnly, func(path string) bool { return slices.Contains(l.Write, path) })
	if len(l.Write) == 0 {
		l.Write, l.Mode = nil, sandbox.ReadOnly.String()
	}
	return l, nil
}

// apply adds an entry to a limit.
func (s sandboxContext) apply(n entry, l *sandbox.Limit) *rpcError {
	named, e := s.paths(n.Path.V)
	if e != nil {
		return e
	}
	for _, path := range named {
		canonical, err := paths.Resolve(path)
		if err != nil {
			return refuse("the sandbox of Codex names %s: %v; nothing was done", path, err)
		}
		switch n.Access {
		case "read":
			if canonical != "/" {
				l.ReadOnly = append(l.ReadOnly, canonical)
			}
		case "write":
			l.Write = append(l.Write, canonical)
		case "none", "deny":
			l.Hide = append(l.Hide, canonical)
		default:
			return refuse("toold does not know the access %q to %s; nothing was done", n.Access, path)
		}
	}
	return nil
}

func (s sandboxContext) paths(n entryPath) ([]string, *rpcError) {
	switch {
	case n.Type == "path":
		path, e := pathOrURI(n.Path)
		return []string{path}, e
	case n.Type != "special":
		return nil, refuse("toold cannot keep the rule of Codex's sandbox about a path of type %q; nothing was done", n.Type)
	}
	var roots []string
	switch n.Value.V.Kind {
	case "root":
		roots = []string{"/"}
	case "minimal", "tmpdir", "slash_tmp":
		return nil, nil // commands have private ones, or can only read them
	case "project_roots", "current_working_directory":
		uris := s.WorkspaceRoots
		if len(uris) == 0 && s.Cwd != "" {
			uris = []string{s.Cwd}
		}
		for _, uri := range uris {
			root, e := pathOf(uri)
			if e != nil {
				return nil, e
			}
			roots = append(roots, root)
		}
	default:
		return nil, refuse("toold does not know the place %q in the sandbox of Codex; nothing was done", n.Value.V.Kind)
	}
	for i := range roots {
		roots[i] = filepath.Join(roots[i], n.Value.V.Subpath)
	}
	return roots, nil
}

func pathOrURI(text string) (string, *rpcError) {
	if filepath.IsAbs(text) {
		return text, nil
	}
	return pathOf(text)
}
