package files

import (
	"encoding/json"
	"strings"

	"github.com/toold/toold/tools"
)

// Location returns the path in the arguments.
func (b base) Location(args json.RawMessage) (string, bool) { return b.o.location(args), false }

// Location returns the first file of a patch.
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

// location returns the path in the arguments, even if Build refuses them.
func (o Options) location(args json.RawMessage) string {
	path := tools.FirstText(args, "file_path", "filePath", "path", "dir_path", "directory")
	if rest, ok := strings.CutPrefix(path, "~/"); ok && o.Home != "" {
		return o.Home + "/" + rest
	}
	return path
}
