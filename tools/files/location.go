package files

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/toold/toold/tools"
)

// Location returns the file that a call names.
func (r reader) Location(args json.RawMessage) (string, bool) { return r.o.location(args), false }

// Location returns the file that a call names.
func (w writer) Location(args json.RawMessage) (string, bool) { return w.o.location(args), false }

// Location returns the file that a call names.
func (e editor) Location(args json.RawMessage) (string, bool) { return e.o.location(args), false }

// Location returns the first file that a patch names.
func (p patcher) Location(args json.RawMessage) (string, bool) {
	a, err := tools.Decode[patchArguments](args)
	if err != nil {
		return "", false
	}
	sections, err := a.sections()
	if err != nil {
		return "", false
	}
	path, err := json.Marshal(map[string]string{"path": sections[0].path})
	if err != nil {
		return "", false
	}
	return p.o.location(path), false
}

// Location returns the directory that a call searches.
func (g grepper) Location(args json.RawMessage) (string, bool) { return g.o.location(args), false }

// Location returns the directory that a call searches.
func (g globber) Location(args json.RawMessage) (string, bool) { return g.o.location(args), false }

// location returns the path in arguments that Build may refuse yet, under whichever of
// its names.
func (o Options) location(args json.RawMessage) string {
	var a struct {
		FilePath  string `json:"file_path"`
		Camel     string `json:"filePath"`
		Path      string `json:"path"`
		DirPath   string `json:"dir_path"`
		Directory string `json:"directory"`
	}
	if json.Unmarshal(args, &a) != nil {
		return ""
	}
	path := cmp.Or(a.FilePath, a.Camel, a.Path, a.DirPath, a.Directory)
	if rest, ok := strings.CutPrefix(path, "~/"); ok && o.Home != "" {
		return o.Home + "/" + rest
	}
	return path
}
