package files

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	"github.com/toold/toold/internal/display"
	"github.com/toold/toold/policy"
	"github.com/toold/toold/sandbox"
	"github.com/toold/toold/tools"
)

// NewLook returns the tool look, with which other programs' protocols read files. Its result is a LookResult.
func NewLook(o Options) tools.Tool {
	b := base{o: o.filled()}
	return located(b, lookDefinition(), b.look)
}

// LookResult is the result of look.
type LookResult struct {
	Missing  bool    `json:"missing,omitempty"`
	Path     string  `json:"path,omitempty"` // canonical
	Kind     string  `json:"kind,omitempty"` // "file", "directory" or "other"
	Link     bool    `json:"link,omitempty"`
	Size     int64   `json:"size,omitempty"`
	Modified int64   `json:"modified_ms,omitempty"`
	Data     []byte  `json:"data,omitempty"`
	EOF      bool    `json:"eof,omitempty"` // Data ends at the end of the file
	Entries  []Entry `json:"entries,omitempty"`
	More     bool    `json:"more,omitempty"` // the directory has more names than Entries
}

// Entry is one name in a directory.
type Entry struct {
	Name string `json:"name"`
	Kind string `json:"kind"` // "file", "directory", "symlink" or "other"
}

type lookArguments struct {
	Op       string `json:"op" enum:"stat|list|read" required:"true"`
	FilePath string `json:"file_path" required:"true"`
	Offset   *int64 `json:"offset"` // in bytes
	Limit    *int64 `json:"limit"`  // in bytes
}

func lookDefinition() tools.Definition {
	return tools.Definition{Name: "look", Description: "Looks at a file or directory for another program.", Parameters: json.RawMessage(`{"type":"object"}`), Hidden: true}
}

func (b base) look(a lookArguments) (_ tools.Invocation, err error) {
	v := look{o: b.o, op: a.Op, limit: -1}
	if a.Offset != nil {
		v.offset = max(*a.Offset, 0)
	}
	if a.Limit != nil {
		v.limit = max(*a.Limit, 0)
	}
	v.file, err = b.o.resolve(a.FilePath)
	return v, err
}

type look struct {
	o             Options
	op            string
	file          target
	offset, limit int64 // in bytes; negative = no limit
}

func (v look) Traits() tools.Traits { return tools.Traits{ReadOnly: true} }

func (v look) Effects() []policy.Effect { return []policy.Effect{v.file.effect(policy.Read)} }

func (v look) Text() string {
	verb := map[string]string{"stat": "Look at", "list": "List", "read": "Read"}[v.op]
	return display.Visible(verb + " " + v.file.name())
}

func (v look) Execute(ctx context.Context, io tools.IO) tools.Result {
	var err error
	if v.o, err = v.o.masked(ctx, io); err != nil {
		return failed(ctx, err)
	}
	s, held, err := v.result(ctx)
	if errors.Is(err, fs.ErrNotExist) {
		s, err = LookResult{Missing: true}, nil
	}
	if err != nil {
		result := failed(ctx, err)
		result.Sandbox = v.o.report(held)
		return result
	}
	text, err := json.Marshal(s)
	if err != nil {
		return failed(ctx, err)
	}
	return tools.Result{Text: string(text), Sandbox: v.o.report(held)}
}

func (v look) result(ctx context.Context) (s LookResult, held sandbox.Report, err error) {
	if v.file.astray != nil {
		return s, held, v.file.astray
	}
	if err := v.o.limited(v.file.canonical, false); err != nil {
		return s, held, err
	}
	switch v.op {
	case "stat":
		return v.stat(ctx)
	case "list":
		return v.list(ctx)
	}
	return v.read(ctx)
}

// stat opens the path as a command would, without following a link that has replaced it. If it cannot be opened, such
// as a pipe, stat returns only its kind.
func (v look) stat(ctx context.Context) (s LookResult, held sandbox.Report, err error) {
	if err := v.o.Profile.CanRead(v.file.canonical); err != nil {
		return s, held, err
	}
	f, held, err := v.o.Files.OpenDir(ctx, v.o.Profile, v.file.canonical)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		f, held, err = v.o.Files.Open(ctx, v.o.Profile, v.file.canonical)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return s, held, err
	}
	s = LookResult{Path: v.file.canonical, Link: v.file.link}
	if err != nil {
		if s.Kind = v.kindOfEntry(ctx); s.Kind == "" || s.Kind == "symlink" {
			return LookResult{}, held, err
		}
		return s, held, nil
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return LookResult{}, held, err
	}
	s.Kind, s.Size, s.Modified = kind(info.Mode()), info.Size(), info.ModTime().UnixMilli()
	return s, held, nil
}

func (v look) kindOfEntry(ctx context.Context) string {
	dir, _, err := v.o.Files.OpenDir(ctx, v.o.Profile, filepath.Dir(v.file.canonical))
	if err != nil {
		return ""
	}
	defer dir.Close()
	entries, _ := dir.ReadDir(mostEntries) // after an error the kind is unknown
	for _, e := range entries {
		if e.Name() == filepath.Base(v.file.canonical) {
			return kind(e.Type())
		}
	}
	return ""
}

func kind(m fs.FileMode) string {
	switch {
	case m.IsRegular():
		return "file"
	case m.IsDir():
		return "directory"
	case m&fs.ModeSymlink != 0:
		return "symlink"
	}
	return "other"
}

func (v look) list(ctx context.Context) (s LookResult, held sandbox.Report, err error) {
	dir, held, err := v.o.Files.OpenDir(ctx, v.o.Profile, v.file.canonical)
	if err != nil {
		return s, held, err
	}
	defer dir.Close()
	entries, err := dir.ReadDir(mostEntries + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return s, held, err
	}
	if s.More = len(entries) > mostEntries; s.More {
		entries = entries[:mostEntries]
	}
	s.Path = v.file.canonical
	for _, e := range entries {
		s.Entries = append(s.Entries, Entry{e.Name(), kind(e.Type())})
	}
	return s, held, nil
}

func (v look) read(ctx context.Context) (s LookResult, held sandbox.Report, err error) {
	f, held, err := v.o.Files.Open(ctx, v.o.Profile, v.file.canonical)
	if err != nil {
		return s, held, err
	}
	defer f.Close()
	most := v.o.MaxWrite
	if v.limit >= 0 {
		most = min(most, v.limit)
	}
	data, err := io.ReadAll(io.LimitReader(io.NewSectionReader(f, v.offset, most+1), most+1))
	if err != nil {
		return s, held, err
	}
	if s.EOF = int64(len(data)) <= most; !s.EOF {
		data = data[:most]
	}
	if !s.EOF && v.limit < 0 {
		return s, held, fmt.Errorf("%s has more than %d bytes, the most that one read returns", v.file.name(), most)
	}
	s.Path, s.Data = v.file.canonical, data
	return s, held, nil
}
