// Package claude makes unmodified Claude Code run its calls in toold. Its plugin (a mod) passes the calls of tools
// that run commands or change files to toold, and answers with results of Claude Code's own tools. If toold does not
// answer, nothing runs.
//
// Claude Code before 2.1.287 ignores the plugin; for these versions the hook of Setting decides.
package claude

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"strings"
)

//go:embed plugin/.claude-plugin/plugin.json plugin/hooks/hooks.json plugin/hooks/register.js
var plugin embed.FS

// Files returns the files of the plugin by path. command is toold's absolute path and the flags that select its daemon.
func Files(command ...string) (map[string][]byte, error) {
	words, err := json.Marshal(command)
	if err != nil {
		return nil, fmt.Errorf("cannot write the command of the plugin: %w", err)
	}
	files := map[string][]byte{}
	err = fs.WalkDir(plugin, "plugin", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := plugin.ReadFile(path)
		files[strings.TrimPrefix(path, "plugin/")] = bytes.Replace(text, []byte(`["toold"];`), append(words, ';'), 1)
		return err
	})
	return files, err
}

// Setting returns an entry for "PreToolUse" in the "hooks" of Claude Code's settings.json. The hook decides on every
// call that the plugin does not answer, and blocks if it fails.
func Setting(command ...string) map[string]any {
	hook := map[string]any{"type": "command", "command": Line(command) + " hook claude --timeout 590s", "timeout": 600, "onFailure": "block"}
	return map[string]any{"matcher": "*", "hooks": []any{hook}}
}

// Line returns words as a quoted shell command line.
func Line(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
	}
	return strings.Join(quoted, " ")
}
